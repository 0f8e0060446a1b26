"""MBPP: `{task_id, text | prompt, code, test_list, test_setup_code | test_imports, challenge_test_list}`.

The first assertion is shown as an example, as the field does; all of them are the hidden tests.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from envs.code.recording import NotConvertible, near_misses, record_check, refuse_visible
from envs.formats import BadRow, collect, read_records, required
from envs.taskrows import TaskFile
from envs.tasksets import task_id
from envs.types import Split, Task
from tools.types import Message


def read(path: Path, split: Split, backend: str = "bubblewrap") -> TaskFile:
    """The tasks of an MBPP file; a problem whose assertions cannot be converted is a bad row."""
    refuse_visible(str(path), backend)
    return collect(path, read_records(path), lambda row: [_convert(row, split, backend)])


def _convert(row: dict[str, Any], split: Split, backend: str) -> Task:
    code, asserts = required(row, "code"), _texts(row, "test_list")
    if not asserts:
        raise BadRow("test_list", "at least one assertion is needed, the list is empty")
    words = required(row, "text" if "text" in row else "prompt")
    setup = row.get("test_setup_code") or "\n".join(
        _texts(row, "test_imports") if "test_imports" in row else []
    )
    if not isinstance(setup, str):
        raise BadRow("test_setup_code", f"text is expected, got {type(setup).__name__}")
    hidden = [*asserts, *(_texts(row, "challenge_test_list") if row.get("challenge_test_list") else [])]
    code = code.replace("\r\n", "\n").replace("\t", "    ")
    try:
        entry_point = _entry_point(code, asserts)
        check = _check(setup, hidden, entry_point)
        tests = record_check(code, entry_point, check, backend)
    except NotConvertible as error:
        raise BadRow("test_list", str(error)) from error
    content = (
        f"{words.strip()}\n\nFor example:\n{asserts[0].strip()}\n\nSubmit the whole source with submit(code)."
    )
    prompt: tuple[Message, ...] = ({"role": "user", "content": content},)
    first = tests[0]
    examples = [[first["input"], first["expected"]]] if first["rule"]["name"] == "equal" else []
    data = {"form": "function", "entry_point": entry_point, "preamble": "", "examples": examples}
    answer = {
        "tests": tests,
        "rule": {"name": "equal", "tolerance": None},
        "solution": code,
        "near_misses": near_misses(entry_point, tests),
    }
    return Task(
        id=task_id("code-v1", prompt, data, answer),
        env="code-v1",
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        metadata={"family": "mbpp", "name": str(row.get("task_id", "")), "source": "mbpp"},
    )


def _texts(row: dict[str, Any], field: str) -> list[str]:
    values = required(row, field, list)
    if not all(isinstance(value, str) for value in values):
        raise BadRow(field, "a list of texts is expected")
    return list(values)


def _parsed(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotConvertible(f"{what} does not parse: {error}") from error


def _entry_point(code: str, asserts: list[str]) -> str:
    """The function of the solution that the first assertion calls."""
    defined = {node.name for node in _parsed(code, "the code").body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(_parsed(asserts[0], "the first assertion")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            return node.func.id
    raise NotConvertible(f"the first assertion calls none of {', '.join(sorted(defined)) or 'no function'}")


class _Rename(ast.NodeTransformer):
    """Calls of the function become calls of `candidate`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("candidate", node.ctx) if node.id == self._name else node


def _check(setup: str, asserts: list[str], entry_point: str) -> str:
    """`def check(candidate)` around the assertions, a line each."""
    lines = [ast.unparse(node) for node in _parsed(setup, "the setup code").body]
    for text in asserts:
        tree = _Rename(entry_point).visit(_parsed(text, "an assertion"))
        lines += [ast.unparse(node) for node in tree.body]
    body = "\n".join(f"    {line}" for block in lines for line in block.split("\n"))
    return f"def check(candidate):\n{body}\n"

"""APPS: a folder a problem (`question.txt, input_output.json, solutions.json, starter_code.py, metadata.json`),
a folder of such folders, or the JSONL of the dataset hub with the same as texts.

`input_output` is `{inputs, outputs, fn_name?}`. With `fn_name` the inputs are argument lists and an output may be
wrapped in a list of one: the first solution's own result says which; without a solution it is unwrapped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envs.code import driver
from envs.code.comparison import Rule, agree
from envs.code.formats.contest import PRELUDE, contest_task
from envs.code.recording import NotConvertible, record_inputs, refuse_visible
from envs.formats import BadRow, collect, read_records, required
from envs.taskrows import MAX_LINE_BYTES, Record, TaskFile
from envs.types import Split, Task

FIELDS = frozenset({"question", "input_output", "solutions"})
_FILES = {
    "question": "question.txt",
    "input_output": "input_output.json",
    "solutions": "solutions.json",
    "starter_code": "starter_code.py",
    "metadata": "metadata.json",
}


def is_folder(path: Path) -> bool:
    """Whether a folder holds a problem, or folders that do."""
    return bool(_problems(path))


def read(path: Path, split: Split, backend: str = "bubblewrap") -> TaskFile:
    """The tasks of a folder or file; the number of a bad row is the place of its folder in the sorted list."""
    refuse_visible(str(path), backend)
    records = _folders(path) if path.is_dir() else read_records(path)
    return collect(path, records, lambda row: [_convert(row, split, backend)])


def _problems(path: Path) -> list[Path]:
    if (path / _FILES["question"]).is_file():
        return [path]
    return sorted(each.parent for each in path.glob(f"*/{_FILES['question']}"))


def _folders(path: Path) -> Iterator[Record]:
    for number, folder in enumerate(_problems(path), 1):
        try:
            row: dict[str, Any] = {"problem_id": folder.name}
            for field, name in _FILES.items():
                if (folder / name).is_file():
                    row[field] = _contents(folder / name)
            yield number, row
        except BadRow as error:
            yield number, error


def _contents(file: Path) -> str:
    size = file.stat().st_size
    if file.is_symlink() or size > MAX_LINE_BYTES:
        raise BadRow(file.name, f"{file} is a regular file of at most {MAX_LINE_BYTES} bytes, it has {size}")
    return file.read_text(encoding="utf-8", errors="replace")


def _parsed(row: dict[str, Any], field: str, kind: type) -> Any:
    """A field that is JSON, or text that holds JSON; empty text is an empty value."""
    value = row.get(field, "")
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else kind()
        except (ValueError, RecursionError) as error:
            raise BadRow(field, f"JSON is expected: {error}") from error
    if not isinstance(value, kind):
        raise BadRow(field, f"{kind.__name__} is expected, got {type(value).__name__}")
    return value


def _convert(row: dict[str, Any], split: Split, backend: str) -> Task:
    words, cases = required(row, "question"), _parsed(row, "input_output", dict)
    inputs, outputs = (required(cases, field, list) for field in ("inputs", "outputs"))
    if len(inputs) != len(outputs) or not inputs:
        raise BadRow("input_output", f"one output an input is needed, got {len(inputs)} and {len(outputs)}")
    solutions = [s for s in _parsed(row, "solutions", list) if isinstance(s, str)]
    solution = solutions[0] if solutions else None
    starter, method = row.get("starter_code") or "", cases.get("fn_name") or ""
    if not isinstance(starter, str) or not isinstance(method, str):
        raise BadRow("starter_code", "starter_code and fn_name are text")
    if method:
        outputs = _unwrapped(method, starter, solution, inputs, outputs, backend)
    return contest_task(
        source="apps",
        name=str(row.get("problem_id", row.get("id", ""))),
        words=words,
        starter=starter,
        method=method,
        tests=list(zip(inputs, outputs, strict=True)),
        examples=[],
        solution=solution,
        split=split,
        metadata={"difficulty": str(row.get("difficulty", ""))},
    )


def _unwrapped(
    method: str, starter: str, solution: str | None, inputs: list[Any], outputs: list[Any], backend: str
) -> list[Any]:
    if not all(isinstance(output, list) and len(output) == 1 for output in outputs):
        return outputs
    bare = [output[0] for output in outputs]
    if solution is None:
        return bare
    entry_point = f"Solution.{method}" if "class Solution" in solution else method
    try:
        given = [[driver.encode(argument) for argument in arguments] for arguments in inputs]
        tests = record_inputs(PRELUDE + solution, entry_point, given, Rule("json"), backend)
    except (NotConvertible, TypeError, ValueError) as error:
        raise BadRow("solutions", f"the first solution does not run: {error}") from error
    results = [driver.decode(test["expected"]) for test in tests]
    wrapped = all(
        agree(output, result, Rule("json")) for output, result in zip(outputs, results, strict=True)
    )
    return outputs if wrapped else bare

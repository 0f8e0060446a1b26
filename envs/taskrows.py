"""Reads task files row by row; a bad row costs one report, not the file."""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast, get_args

from envs.snapshots import canonical_json
from envs.types import Split, Task
from tools.types import Message

_SPLITS = get_args(Split)
_FIELDS = ("id", "env", "prompt", "data", "answer", "split", "seed", "metadata")
MAX_LINE_BYTES = 16 << 20
MAX_FILE_BYTES = 1 << 30
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowError:
    """One bad row: `field` is empty when the row as a whole cannot be read."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        where = f", field {self.field!r}" if self.field else ""
        return f"{self.file}, line {self.line}{where}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """The good rows of a file, in order, and a report for each bad one."""

    tasks: tuple[Task, ...]
    errors: tuple[RowError, ...]


class BadRow(ValueError):
    """A row that cannot be a task; carries the field, empty for the row as a whole."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def task_row(task: Task) -> dict[str, Any]:
    """The row from which `load_jsonl` reads the same task."""
    return {
        "id": task.id,
        "env": task.env,
        "prompt": [dict(m) for m in task.prompt],
        "data": dict(task.data),
        "answer": task.answer,
        "split": task.split,
        "seed": task.seed,
        "metadata": dict(task.metadata),
    }


def read_row(row: dict[str, Any]) -> Task:
    """The task of one row that `task_row` wrote.

    Raises:
        ValueError: the row is no task.
    """
    return _task(row, None, lambda *_: "")


Record = tuple[int, dict[str, Any] | BadRow]
"""Number of a row from 1, and its object or why there is none."""


def read_rows(path: Path, env: str | None, max_line_bytes: int, name: Callable[..., str]) -> TaskFile:
    """Read every row; `name(env, prompt, data, answer)` gives ids to rows without one."""
    return collect(path, jsonl_records(path, max_line_bytes), lambda row: [_task(row, env, name)])


def collect(
    path: Path, records: Iterable[Record], convert: Callable[[dict[str, Any]], Iterable[Task]]
) -> TaskFile:
    """Convert every record; one that is bad, or whose task was already there, costs one report.

    `convert` raises `BadRow` for what is no task.
    """
    tasks: list[Task] = []
    errors: list[RowError] = []
    first_line: dict[str, int] = {}
    for number, record in records:
        try:
            if isinstance(record, BadRow):
                raise record
            for task in convert(record):
                if task.id in first_line:
                    raise BadRow(
                        "id", f"ids are unique, {task.id!r} is already on line {first_line[task.id]}"
                    )
                first_line[task.id] = number
                tasks.append(task)
        except BadRow as error:
            errors.append(RowError(file=str(path), line=number, field=error.field, message=str(error)))
    return TaskFile(tasks=tuple(tasks), errors=tuple(errors))


def jsonl_records(path: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Record]:
    """The rows of a JSONL file, gzip by suffix, blank ones left out.

    Raises:
        OSError: the file cannot be read.
    """
    with _open(path) as file:
        for number, raw in _lines(file, max_line_bytes):
            try:
                if raw is None:
                    raise BadRow("", f"a row has at most {max_line_bytes} bytes, this one has more: split it")
                yield number, _object(raw)
            except BadRow as error:
                yield number, error


def json_records(path: Path, max_bytes: int = MAX_FILE_BYTES) -> Iterator[Record]:
    """The objects of a JSON file that holds a list of them, gzip by suffix; the number is the place in the list.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no JSON list, or larger than `max_bytes`.
    """
    with _open(path) as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise ValueError(f"{path} is larger than {max_bytes} bytes: split it, or write it as JSONL")
    try:
        rows = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise ValueError(f"{path} holds one JSON {type(rows).__name__}; a list of objects is expected")
    for number, row in enumerate(rows, 1):
        yield (
            number,
            row if isinstance(row, dict) else BadRow("", f"a row is a JSON object, got {type(row).__name__}"),
        )


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise IsADirectoryError(f"a task file is expected, {str(path)!r} is a folder")
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _lines(file: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Number and bytes of each non-blank line; None for a line over the limit, of which nothing is kept."""
    number = 0
    while raw := file.readline(limit + 2):
        number += 1
        if len(raw.rstrip(b"\r\n")) > limit:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(1 << 20)
            yield number, None
        elif raw.strip():
            yield number, raw


def _object(raw: bytes) -> dict[str, Any]:
    try:
        row = json.loads(
            raw.decode("utf-8-sig").rstrip(), parse_constant=_no_constant, object_pairs_hook=_unique
        )
    except UnicodeDecodeError as error:
        raise BadRow("", f"rows are UTF-8, byte {error.start} is {raw[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        raise BadRow("", f"a row is one JSON object: {error.msg} at column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise BadRow("", f"a row is one JSON object: {error}") from error
    if not isinstance(row, dict):
        raise BadRow("", f"a row is a JSON object, got {type(row).__name__}")
    return row


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON; use null or text")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} is given twice")
    return row


def _task(row: dict[str, Any], env: str | None, name: Callable[..., str]) -> Task:
    for key in row:
        if key not in _FIELDS:
            near = difflib.get_close_matches(key, _FIELDS, n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"the keys are {', '.join(_FIELDS)}; put others in metadata"
            )
            raise BadRow(key, f"unknown key: {hint}")
    where = row.get("env", env)
    if not isinstance(where, str) or not where:
        raise BadRow("env", f"the id of an environment is needed, in the row or for the file, got {where!r}")
    prompt = _prompt(row.get("prompt"))
    data, metadata = _mapping(row, "data"), _mapping(row, "metadata")
    split = row.get("split", "train")
    if split not in _SPLITS:
        raise BadRow("split", f"a split is one of {', '.join(_SPLITS)}, got {split!r}")
    seed = row.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise BadRow("seed", f"a seed is a whole number from 0, got {seed!r}")
    answer = row.get("answer")
    given = row.get("id")
    if not (given is None or (isinstance(given, str) and given)):
        raise BadRow("id", f"an id is text, got {given!r}; leave it out to have it derived from the content")
    try:
        canonical_json([data, metadata, answer, given]).encode()
        id = given if given is not None else name(where, prompt, data, answer)
    except (ValueError, RecursionError) as error:
        raise BadRow("", f"the row cannot be written back as JSON: {error}") from error
    return Task(
        id=id, env=where, prompt=prompt, data=data, answer=answer, split=split, seed=seed, metadata=metadata
    )


def _mapping(row: dict[str, Any], key: str) -> dict[str, Any]:
    value = row.get(key, {})
    if not isinstance(value, dict):
        raise BadRow(key, f"an object is expected, got {type(value).__name__}")
    return value


def _prompt(value: Any) -> tuple[Message, ...]:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise BadRow("prompt", f"text or a list of messages is expected, got {value!r:.60}")
    for number, message in enumerate(value, start=1):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise BadRow("prompt", f"message {number} needs a role, one of {', '.join(_ROLES)}")
        content = message.get("content")
        if not isinstance(content, str):
            raise BadRow("prompt", f"the content of message {number} is text, got {type(content).__name__}")
        if not _encodable(content):
            raise BadRow("prompt", f"message {number} holds a lone surrogate, which is no character")
    return tuple(cast(list[Message], value))


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

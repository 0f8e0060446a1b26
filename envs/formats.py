"""Files of the field as tasks: which format a file is in, and reading it row by row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from envs.taskrows import BadRow, Record, TaskFile, collect, json_records, jsonl_records
from envs.tasksets import load_jsonl
from envs.types import Split

__all__ = ["NATIVE", "BadRow", "Format", "Reader", "collect", "read_records", "read_tasks", "required"]

NATIVE = "agent-rl"
"""The project's own JSONL: see `envs.tasksets.load_jsonl`."""

Reader = Callable[[Path, Split], TaskFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file or folder: how it is read and recognised."""

    read: Reader
    fields: frozenset[str] = frozenset()
    """Keys that every record of such a file has; empty: files are not recognised by their records."""
    folder: Callable[[Path], bool] | None = None
    """Whether a folder is of this format."""


def read_tasks(
    path: str | os.PathLike[str],
    env: str,
    formats: Mapping[str, Format],
    *,
    format: str = "",
    split: Split = "test",
) -> TaskFile:
    """Read a file or folder in one of `formats` or in the project's own; an empty `format` is recognised.

    Raises:
        OSError: the file cannot be read at all.
        ValueError: the format is unknown or not recognised.
    """
    where = Path(path)
    name = format or recognise(where, formats)
    if name == NATIVE:
        return load_jsonl(where, env)
    if name not in formats:
        raise ValueError(f"{env} reads the formats {', '.join([NATIVE, *formats])}, got {name!r}")
    return formats[name].read(where, split)


def recognise(path: Path, formats: Mapping[str, Format]) -> str:
    """The format whose fields the first good record has, the one with most of them first; for folders, its mark.

    Raises:
        OSError: the file cannot be read at all.
        ValueError: no format fits.
    """
    if path.is_dir():
        for name, each in formats.items():
            if each.folder is not None and each.folder(path):
                return name
        known = [name for name, each in formats.items() if each.folder is not None]
        raise ValueError(f"{path} is a folder of no known format ({', '.join(known) or 'none is a folder'})")
    if not any(each.fields for each in formats.values()):
        return NATIVE
    records = (record for _, record in islice(read_records(path), 20) if not isinstance(record, BadRow))
    keys = frozenset(next(records, {}))
    fitting = [name for name, each in formats.items() if each.fields and each.fields <= keys]
    if "prompt" in keys and not fitting:
        return NATIVE
    if not fitting:
        raise ValueError(
            f"{path} is of no known format ({', '.join([NATIVE, *formats])}): its first row has "
            f"{', '.join(sorted(keys)[:12]) or 'no keys'}; name the format"
        )
    return max(fitting, key=lambda name: len(formats[name].fields))


def read_records(path: Path) -> Iterator[Record]:
    """The objects of a JSONL file or of a JSON list, gzip by suffix, told apart by the first character.

    Raises:
        OSError: the file cannot be read.
        ValueError: a JSON list that is none.
    """
    first = next(jsonl_records(path), None)
    starts_list = first is not None and isinstance(first[1], BadRow) and _first_byte(path) == b"["
    yield from json_records(path) if starts_list else jsonl_records(path)


def _first_byte(path: Path) -> bytes:
    import gzip

    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        return bytes(file.read(1024)).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]


def required(row: Mapping[str, Any], field: str, kind: type | tuple[type, ...] = str) -> Any:
    """A field of a record.

    Raises:
        BadRow: it is absent or of another type.
    """
    if field not in row:
        raise BadRow(field, f"the field is missing; the row has {', '.join(sorted(map(str, row))[:12])}")
    value = row[field]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        names = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise BadRow(field, f"{names} is expected, got {type(value).__name__}: {value!r:.60}")
    return value

"""Reads a database out of a task's JSON and says what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from envs.errors import TaskError
from envs.sql.queries import QUERY_TIME_S, World

MAX_TIME_S = 30.0
_TYPE = re.compile(r"[A-Za-z ]{0,40}")


def read_world(data: Mapping[str, Any]) -> World:
    """Return the database under `data["tables"]` or `data["database"]`.

    Tables are a list of `{"name", "columns", "rows"}`, a column is `[name, type]` or
    `[name, type, "table.column" | null]`. A database is `{"folder", "file"}`: a SQLite file of the user's.

    Raises:
        TaskError: the description is not complete; rows that SQLite refuses are noticed when it is built.
    """
    if "database" in data:
        return _read_file(data["database"])
    tables = data.get("tables")
    if not isinstance(tables, list) or not tables:
        raise TaskError(
            "the data of a sql-v1 task has a list of at least one table under 'tables', or a 'database'"
        )
    for table in tables:
        _check_table(table)
    return World({"tables": tables})


def _read_file(database: Any) -> World:
    if not isinstance(database, Mapping):
        raise TaskError(f"a database is an object with folder and file, got {database!r:.80}")
    folder, file = database.get("folder"), database.get("file")
    if not isinstance(folder, str) or not os.path.isabs(folder) or not isinstance(file, str) or not file:
        raise TaskError("a database has an absolute folder and a file beneath it")
    if any(part in ("", ".", "..") for part in file.split("/")):
        raise TaskError(f"the file of a database is a path beneath its folder, got {file!r:.80}")
    return World({"folder": folder, "file": file})


def changes_data(data: Mapping[str, Any]) -> bool:
    """Whether a task is about changing its database.

    Raises:
        TaskError: `changes` is neither true nor false.
    """
    changes = data.get("changes", False)
    if not isinstance(changes, bool):
        raise TaskError(f"whether a task changes its database is true or false, got {changes!r:.80}")
    return changes


def read_shown(data: Mapping[str, Any], world: World) -> list[dict[str, Any]]:
    """The tables that `list_tables` and `describe` show: `{"name", "columns", "notes"}`.

    Raises:
        TaskError: the description is not complete.
    """
    if "tables" in world.spec:
        return list(world.spec["tables"])
    shown = data.get("schema")
    if not isinstance(shown, list):
        raise TaskError("the data of a task on a file has the tables that are shown under 'schema'")
    for table in shown:
        _check_shown(table)
    return shown


def _check_shown(table: Any) -> None:
    columns = table.get("columns") if isinstance(table, Mapping) else None
    if not isinstance(columns, list) or not isinstance(table.get("name"), str):
        raise TaskError(f"a table that is shown is an object with name and columns, got {table!r:.80}")
    for column in columns:
        texts = isinstance(column, list | tuple) and len(column) in (2, 3) and isinstance(column[0], str)
        if not texts or not all(part is None or isinstance(part, str) for part in column):
            raise TaskError(f"a column is [name, type] or [name, type, 'table.column'], got {column!r:.80}")
    notes = table.get("notes", {})
    if not isinstance(notes, Mapping) or not all(isinstance(note, str) for note in notes.values()):
        raise TaskError(f"the notes of a table are text by column, got {notes!r:.80}")


def read_time(data: Mapping[str, Any]) -> float:
    """Seconds for each query: `data["time_s"]`, else 2.

    Raises:
        TaskError: it is no number from 0.1 to 30.
    """
    time_s = data.get("time_s", QUERY_TIME_S)
    if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not 0.1 <= time_s <= MAX_TIME_S:
        raise TaskError(f"a query has from 0.1 to {MAX_TIME_S:g} seconds, got {time_s!r:.40}")
    return float(time_s)


def _check_table(table: Any) -> None:
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise TaskError(f"a table is an object with name, columns and rows, got {table!r:.80}")
    name, columns, rows = table["name"], table.get("columns"), table.get("rows")
    if not isinstance(columns, list) or not columns or not isinstance(rows, list):
        raise TaskError(f"table {name!r} needs a list of columns and a list of rows")
    for column in columns:
        if not _is_column(column):
            raise TaskError(
                f"a column of {name!r} is [name, type] or [name, type, 'table.column'], got {column!r:.80}"
            )
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(columns):
            raise TaskError(f"row {number} of table {name!r} has {len(columns)} values, got {row!r:.80}")


def _is_column(column: Any) -> bool:
    if not isinstance(column, list | tuple) or len(column) not in (2, 3):
        return False
    name, kind, references = (*column, None)[:3]
    if not isinstance(name, str) or not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        return False
    return references is None or (isinstance(references, str) and references.count(".") == 1)

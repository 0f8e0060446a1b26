"""Reads a database out of a task's JSON and says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from envs.errors import TaskError
from envs.sql.queries import World

_TYPE = re.compile(r"[A-Za-z ]{0,40}")


def read_world(data: Mapping[str, Any]) -> World:
    """Return the database under `data["tables"]`: a list of `{"name", "columns", "rows"}`.

    A column is `[name, type]` or `[name, type, "table.column" | null]`.

    Raises:
        TaskError: the description is not complete; rows that SQLite refuses are noticed when it is built.
    """
    tables = data.get("tables")
    if not isinstance(tables, list) or not tables:
        raise TaskError("the data of a sql-v1 task has a list of at least one table under 'tables'")
    for table in tables:
        _check_table(table)
    return World({"tables": tables})


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

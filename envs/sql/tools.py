"""What the agent's tools show: tables, columns, rows and errors as short text."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from envs.sql.queries import Failed, Row, Rows, Value
from envs.sql.states import refused
from tools.errors import ToolError

Tables = Sequence[dict[str, Any]]
"""The `tables` of a world spec."""


def list_text(tables: Tables) -> str:
    """The names of all tables: `orders, clients`."""
    return ", ".join(table["name"] for table in tables)


def describe_text(tables: Tables, name: str) -> str:
    """The columns of one table: `id int, place text, client_id int -> clients.id`; with notes, one a line.

    Raises:
        ToolError: there is no such table.
    """
    wanted = name.strip().strip('"`[]').lower()
    for table in tables:
        if table["name"].lower() == wanted:
            notes = table.get("notes") or {}
            shown = [
                _column_text(*column) + _note_text(notes.get(column[0].lower()))
                for column in table["columns"]
            ]
            return ("\n" if notes else ", ").join(shown)
    near = difflib.get_close_matches(wanted[:80], [table["name"] for table in tables], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ToolError(f"no table {name[:80]!r}{hint} tables: {list_text(tables)}")


def _column_text(name: str, kind: str, references: str | None = None) -> str:
    return f"{name} {kind}" if references is None else f"{name} {kind} -> {references}"


def _note_text(note: str | None) -> str:
    return f": {note}" if note else ""


def rows_text(result: Rows) -> str:
    """A header and one line a row, cells parted by `|`; NULL is `NULL`, rows left out are counted."""
    if result.changed is not None:
        return f"{result.changed} row{'' if result.changed == 1 else 's'} changed"
    lines = [row_text(result.columns), *map(row_text, result.rows)]
    if not result.rows:
        lines.append("(no rows)")
    if result.left_out:
        lines.append(f"({result.left_out} more rows)")
    return "\n".join(lines)


def row_text(row: Row) -> str:
    """One line; a `|` or line break inside a cell is written with a backslash."""
    return "|".join(_cell_text(value) for value in row)


def _cell_text(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return value.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "\\n").replace("\r", "\\r")
    return repr(value)


def failure_text(failed: Failed, time_s: float, *, changes: bool = False) -> str:
    """Why a query gave no rows, for the model."""
    if failed.kind == "time":
        return f"query took longer than {time_s:g} s"
    if failed.kind == "memory":
        return "query used too much memory"
    if refused(failed):
        allowed = "SELECT, INSERT, UPDATE and DELETE" if changes else "SELECT"
        return f"only {allowed} statements are allowed"
    return failed.message

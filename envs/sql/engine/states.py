"""Statements that change data, and the contents of a whole database for comparison."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable
from typing import Any

from .execute import run_own, run_query

MAX_CHANGES = 200
"""Statements of one gold."""


def run_change(conn: sqlite3.Connection, query: dict[str, Any], time_s: float) -> dict[str, Any]:
    """Run one statement on a copy and write the copy to `query["save"]` if it changed anything."""
    before = conn.total_changes
    result = run_query(conn, query, time_s)
    if "error" not in result and conn.total_changes != before:
        with open(query["save"], "xb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(conn.serialize())
        result["saved"] = True
    return result


def state_of(conn: sqlite3.Connection, query: dict[str, Any], time_s: float) -> dict[str, Any]:
    """What the database holds after the statements of `query["script"]`: `{"state": {table: digest}}`.

    A digest names the bag of a table's rows; floats count to 9 significant digits.
    """
    for sql in query["script"][:MAX_CHANGES]:
        result = run_query(conn, {**query, "sql": sql}, time_s)
        if "error" in result:
            return result

    def read() -> dict[str, Any]:
        conn.set_authorizer(None)
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        tables = [str(name) for (name,) in conn.execute(sql).fetchall()]
        return {"state": {table: _digest(conn, table) for table in tables}}

    return run_own(conn, read, min(time_s, query["time_s"]))


def _digest(conn: sqlite3.Connection, table: str) -> str:
    quoted = '"' + table.replace('"', '""') + '"'
    return bag_digest(conn.execute(f"SELECT * FROM {quoted}"))


def bag_digest(rows: Iterable[tuple[Any, ...]]) -> str:
    """Names a bag of rows whatever their order: the sum of the rows' hashes, and how many there are."""
    total = count = 0
    for row in rows:
        text = json.dumps([_spelled(value) for value in row])
        total += int.from_bytes(
            hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest(), "big"
        )
        count += 1
    return f"{count}:{total % (1 << 128):032x}"


def _spelled(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.9g}")
    return value

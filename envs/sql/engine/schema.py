"""Reads the tables and columns of a database that somebody else made."""

from __future__ import annotations

import sqlite3
from typing import Any

from .execute import run_own

MAX_TABLES = 500


def read_schema(conn: sqlite3.Connection, query: dict[str, Any], time_s: float) -> dict[str, Any]:
    """`{"tables": [[name, [[column, type, "table.column" | null], ...]], ...]}`, views included, or an error."""

    def read() -> dict[str, Any]:
        conn.set_authorizer(None)  # PRAGMA of our own; the connection is closed afterwards
        sql = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
        )
        names = [str(name) for (name,) in conn.execute(sql).fetchmany(MAX_TABLES)]
        return {"tables": [[name, _columns(conn, name)] for name in names]}

    return run_own(conn, read, min(time_s, query["time_s"]))


def _columns(conn: sqlite3.Connection, table: str) -> list[list[Any]]:
    quoted = '"' + table.replace('"', '""') + '"'
    targets = {}
    for row in conn.execute(f"PRAGMA foreign_key_list({quoted})"):
        targets[str(row[3]).lower()] = f"{row[2]}.{row[4]}" if row[4] else str(row[2])
    found = conn.execute(f"PRAGMA table_info({quoted})").fetchall()
    return [[str(row[1]), str(row[2]), targets.get(str(row[1]).lower())] for row in found]

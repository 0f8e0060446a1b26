"""Runs one statement on a guarded connection within its limits."""

from __future__ import annotations

import signal
import sqlite3
import time
from collections.abc import Callable
from typing import Any

MAX_RESULT_CHARS = 2_000_000
GRACE_S = 1.0
"""How long after a query's deadline a single native call may still run before the process is killed."""


class QueryFailed(Exception):
    """A query that gave no result, with its kind (sql, time or memory) and why."""


def run_query(conn: sqlite3.Connection, query: dict[str, Any], time_s: float) -> dict[str, Any]:
    """Run one query and return columns, rows and how many rows were left out, or an error.

    `query` holds sql, max_rows, max_count (rows counted beyond those), max_cell (characters kept of a text;
    0: all) and time_s, which the argument shortens.
    """
    return run_own(conn, lambda: _fetch(conn, query), min(time_s, query["time_s"]))


def run_own(conn: sqlite3.Connection, run: Callable[[], dict[str, Any]], time_s: float) -> dict[str, Any]:
    """What `run` returns, or an error when it failed or outlasted `time_s` seconds."""
    limit = max(0.0, time_s)
    deadline = time.monotonic() + limit
    conn.set_progress_handler(lambda: time.monotonic() > deadline, 2000)
    signal.setitimer(signal.ITIMER_REAL, limit + GRACE_S)
    try:
        return run()
    except QueryFailed as failed:
        return {"error": failed.args[1], "kind": failed.args[0]}
    except MemoryError:
        return {"error": "out of memory", "kind": "memory"}
    except sqlite3.OperationalError as error:
        kind = "time" if str(error) == "interrupted" else "sql"
        return {"error": str(error), "kind": kind}
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        return {"error": str(error), "kind": "sql"}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        conn.set_progress_handler(None, 0)


def _fetch(conn: sqlite3.Connection, query: dict[str, Any]) -> dict[str, Any]:
    cursor = conn.execute(query["sql"])
    try:
        if cursor.description is None:
            if cursor.rowcount < 0:
                raise QueryFailed("sql", "the query is empty: write one statement")
            return {"columns": [], "rows": [], "left_out": 0, "changed": cursor.rowcount}
        rows: list[list[Any]] = []
        chars = 0
        while len(rows) < query["max_rows"] and (row := cursor.fetchone()) is not None:
            rows.append([_cell(value, query["max_cell"]) for value in row])
            chars += sum(len(v) for v in row if isinstance(v, str | bytes))
            if chars > MAX_RESULT_CHARS and not query["max_cell"]:
                raise QueryFailed("memory", "result too large")
        left_out = 0
        while left_out < query["max_count"] and cursor.fetchone() is not None:
            left_out += 1
        return {"columns": [c[0] for c in cursor.description], "rows": rows, "left_out": left_out}
    finally:
        cursor.close()


def _cell(value: Any, max_cell: int) -> Any:
    if isinstance(value, bytes):
        return {"blob": (value[: max_cell // 2] if max_cell else value).hex()}
    if isinstance(value, str) and max_cell and len(value) > max_cell:
        return f"{value[:max_cell]}...({len(value) - max_cell} characters left out)"
    return value

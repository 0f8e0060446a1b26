"""What keeps a query in its place inside SQLite: authorizer, limits and a clock that stands still."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import cache
from typing import Any

MAX_CELL_BYTES = 100_000
NOW = "2024-06-15 12:00:00"
"""The worlds' clock stands still: otherwise a repeated query would not repeat its answer."""
MAX_CELL_BYTES_OF_FILES = 1_000_000
"""The same for the databases of users, whose rows are longer."""
MAX_MB_WRITTEN = 64
"""How large a database may be that a task changes."""

READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
CHANGES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
"""Of rows only: nobody creates, drops or alters tables, and transactions are the worker's own."""
_DENIED_FUNCTIONS = {"load_extension", "random", "randomblob", "fts3_tokenizer"}
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 20_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SINCE_343 = ("timediff",) if sqlite3.sqlite_version_info >= (3, 43) else ()
_CLOCK_FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime", *_SINCE_343)
_CLOCK_KEYWORDS = {"current_date": NOW[:10], "current_time": NOW[11:], "current_timestamp": NOW}


def guard(conn: sqlite3.Connection, *, changes: bool = False, max_cell_bytes: int = MAX_CELL_BYTES) -> None:
    """Put a connection under all guards; with `changes` it may also insert, update and delete rows."""
    if not changes:
        conn.execute("PRAGMA query_only=ON")
    conn.execute("PRAGMA temp_store=MEMORY")
    conn.execute("PRAGMA cell_size_check=ON")
    conn.execute("PRAGMA mmap_size=0")
    conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
    _freeze_clock(conn)
    for limit, value in _LIMITS.items():
        conn.setlimit(limit, value)
    conn.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_cell_bytes)
    conn.set_authorizer(_authorizer(READS | CHANGES if changes else READS))


def _authorizer(allowed: set[int]) -> Callable[..., int]:
    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action not in allowed:
            return sqlite3.SQLITE_DENY
        if action in CHANGES and (first or "").lower().startswith("sqlite_"):
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    return authorize


@cache
def bare() -> sqlite3.Connection:
    """A connection without guards, for SQL of our own."""
    return sqlite3.connect(":memory:", check_same_thread=False)


def _freeze_clock(conn: sqlite3.Connection) -> None:
    for name in _CLOCK_FUNCTIONS:
        conn.create_function(name, -1, _frozen(name))
    for name, value in _CLOCK_KEYWORDS.items():
        conn.create_function(name, 0, lambda value=value: value)


def _frozen(name: str) -> Callable[..., Any]:
    """Return SQLite's own date function `name` with `now` replaced by the worlds' clock."""
    first_time = 1 if name == "strftime" else 0

    def call(*args: Any) -> Any:
        words = [a.strip().lower() if isinstance(a, str) else a for a in args]
        values = [NOW if word == "now" else a for a, word in zip(args, words, strict=True)]
        if len(words) == first_time or words[first_time : first_time + 1] in (["subsec"], ["subsecond"]):
            values.insert(first_time, NOW)  # SQLite takes a missing time for now
        marks = ", ".join("?" * len(values))
        return bare().execute(f"SELECT {name}({marks})", values).fetchone()[0]

    return call

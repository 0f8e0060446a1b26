"""The process that runs a model's SQL: a script with the standard library only, started by `envs.sql.pool`.

    host --- {"queries": [...], "worlds": {key: spec}} ---> worker      frames: 4 bytes of length, then JSON
    host <-- {"results": [...]}, {"missing": [keys]} or {"broken": why} ---- worker

What keeps a query in its place, from the inside out:

1. an authorizer that allows reading only (no DML, DDL, ATTACH, PRAGMA, transactions, `load_extension`, randomness);
2. `query_only`, a frozen clock, and SQLite's limits on lengths, columns, depths and attached files;
3. a progress handler that ends a query at its deadline;
4. a heap limit inside SQLite and an address-space limit around the process, temporary data in memory;
5. an alarm that kills the process when one native call outlasts the deadline, and the host's own kill after that.

The queries of one request run in order up to the first that fails. A world is kept as an immutable image.
Queries of the agent share one connection per world, which cannot write; `fresh` queries (grading) each get a copy
made from the image and closed afterwards.

Not covered: an exploitable bug in SQLite itself would run as the user; this is no sandbox for native code.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import struct
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from functools import cache
from typing import Any

WORLDS_KEPT = 512
"""Worlds in memory; a world that fell out is sent again by the host."""
IMAGE_BYTES_KEPT = 64 << 20
"""Bytes of their images; each exists twice, and a third time while it is graded."""
MAX_CELL_BYTES = 100_000
MAX_RESULT_CHARS = 2_000_000
GRACE_S = 1.0
"""How long after a query's deadline a single native call may still run before the process is killed."""
NOW = "2024-06-15 12:00:00"
"""The worlds' clock stands still: otherwise a repeated query would not repeat its answer."""

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_DENIED_FUNCTIONS = {"load_extension", "random", "randomblob", "fts3_tokenizer"}
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_CELL_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 20_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_SINCE_343 = ("timediff",) if sqlite3.sqlite_version_info >= (3, 43) else ()
_CLOCK_FUNCTIONS = ("date", "time", "datetime", "julianday", "unixepoch", "strftime", *_SINCE_343)
_CLOCK_KEYWORDS = {"current_date": NOW[:10], "current_time": NOW[11:], "current_timestamp": NOW}


class QueryFailed(Exception):
    """A query that gave no result, with its kind (sql, time or memory) and why."""


def build_image(spec: dict[str, Any]) -> bytes:
    """Build the database of a world spec (`{"tables": [{"name", "columns", "rows"}]}`) and return its image."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    try:
        create_tables(conn, spec)
        return conn.serialize()
    finally:
        conn.close()


def create_tables(conn: sqlite3.Connection, spec: dict[str, Any]) -> None:
    """Create and fill the tables of a world spec; names come from the world's author and are quoted."""
    conn.execute("BEGIN")
    for table in spec["tables"]:
        columns = ", ".join(_column_sql(*column) for column in table["columns"])
        name = _quoted(table["name"])
        conn.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * len(table["columns"]))
        conn.executemany(f"INSERT INTO {name} VALUES ({marks})", table["rows"])
    conn.execute("COMMIT")


def _column_sql(name: str, kind: str, references: str | None = None) -> str:
    sql = f"{_quoted(name)} {kind}"
    if references is None:
        return sql
    table, column = references.split(".")
    return f"{sql} REFERENCES {_quoted(table)}({_quoted(column)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def open_reader(image: bytes) -> sqlite3.Connection:
    """Open a connection on a copy of the image that can only read, within the limits above."""
    # Statements are not cached: a short query can compile to megabytes, and those of one agent would be another's want.
    conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    conn.deserialize(image)
    conn.execute("PRAGMA query_only=ON")
    conn.execute("PRAGMA temp_store=MEMORY")
    conn.text_factory = lambda raw: raw.decode("utf-8", "replace")
    _freeze_clock(conn)
    for limit, value in _LIMITS.items():
        conn.setlimit(limit, value)
    conn.set_authorizer(_authorize)
    return conn


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action not in _ALLOWED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@cache
def _bare() -> sqlite3.Connection:
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
        return _bare().execute(f"SELECT {name}({marks})", values).fetchone()[0]

    return call


def run_query(conn: sqlite3.Connection, query: dict[str, Any]) -> dict[str, Any]:
    """Run one query and return columns, rows and how many rows were left out, or an error.

    `query` holds sql, max_rows, max_count (rows counted beyond those), max_cell (characters kept of a text;
    0: all) and time_s.
    """
    deadline = time.monotonic() + query["time_s"]
    conn.set_progress_handler(lambda: time.monotonic() > deadline, 2000)
    signal.setitimer(signal.ITIMER_REAL, query["time_s"] + GRACE_S)
    try:
        return _fetch(conn, query)
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
            raise QueryFailed("sql", "the query is empty: write one SELECT statement")
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


class Worlds:
    """The most recently used worlds: image and shared read-only connection by key."""

    def __init__(self, kept: int = WORLDS_KEPT, kept_bytes: int = IMAGE_BYTES_KEPT) -> None:
        self._kept, self._kept_bytes = kept, kept_bytes
        self._worlds: OrderedDict[str, tuple[bytes, sqlite3.Connection]] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._worlds

    def add(self, key: str, spec: dict[str, Any], needed: Container[str] = ()) -> None:
        """Build a world and make room for it, keeping the `needed` ones."""
        image = build_image(spec)
        others = [old for old in self._worlds if old not in needed]
        size = len(image) + sum(len(old) for old, _ in self._worlds.values())
        while others and (len(self._worlds) >= self._kept or size > self._kept_bytes):
            size -= len(self._worlds[others[0]][0])
            self.drop(others.pop(0))
        self._worlds[key] = (image, open_reader(image))

    def drop(self, key: str) -> None:
        """Forget a world."""
        _, conn = self._worlds.pop(key)
        conn.close()

    def run(self, query: dict[str, Any]) -> dict[str, Any]:
        """Run one query on the shared connection, or on a copy of its own when `fresh`."""
        key = query["world"]
        self._worlds.move_to_end(key)
        image, shared = self._worlds[key]
        conn = open_reader(image) if query["fresh"] else shared
        try:
            result = run_query(conn, query)
        finally:
            if query["fresh"]:
                conn.close()
        if result.get("kind") == "memory" and not query["fresh"]:
            self.drop(key)  # an out-of-memory error may leave the connection's caches large
            self._worlds[key] = (image, open_reader(image))
        return result


def serve(read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
    """Answer frames until the host closes the pipe."""
    worlds = Worlds()
    while header := read(4):
        request = json.loads(read(struct.unpack(">I", header)[0]))
        payload = json.dumps(_answer(worlds, request)).encode()
        write(struct.pack(">I", len(payload)) + payload)


def _answer(worlds: Worlds, request: dict[str, Any]) -> dict[str, Any]:
    needed = {query["world"] for query in request["queries"]}
    for key, spec in request["worlds"].items():
        try:
            if key not in worlds:
                worlds.add(key, spec, needed)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            return {"broken": str(error)}
    missing = sorted(key for key in needed if key not in worlds)
    if missing:
        return {"missing": missing}
    results = []
    for query in request["queries"]:
        results.append(worlds.run(query))
        if "error" in results[-1]:
            break
    return {"results": results}


def limit_memory(memory_mb: int) -> None:
    """Bound SQLite's heap and, where the system allows it, the process's address space."""
    _bare().execute(f"PRAGMA hard_heap_limit={memory_mb * 1024 * 1024 // 2}")
    try:
        import resource

        limit = memory_mb * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return  # macOS refuses RLIMIT_AS: SQLite's own heap limit stands


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    limit_memory(int(sys.argv[1]))
    serve(sys.stdin.buffer.read, _write)

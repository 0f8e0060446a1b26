"""The process that runs a model's SQL, standard library only; started by `envs.sql.pool`.

    host --- {"queries": [...], "worlds": {key: spec}, "total_s"} ---> worker      frames: 4 bytes of length, then JSON
    host <-- {"results": [...]}, {"missing": [keys]} or {"broken": why} ---- worker

What keeps a query in its place, from the inside out:

1. an authorizer that allows reading only, and changes of rows in the worlds of tasks that change data (no DDL,
   ATTACH, PRAGMA, transactions, `load_extension`, randomness);
2. `query_only`, files opened read-only and immutable, a frozen clock, and SQLite's limits on lengths, columns, depths;
3. a progress handler that ends a query at its deadline;
4. a heap limit inside SQLite and an address-space limit around the process, temporary data in memory;
5. an alarm that kills the process when one native call outlasts the deadline, and the host's own kill after that.

The queries of one request run in order up to the first that fails, within `total_s` together. A world is kept as an
immutable image, or as the file that it is. Queries of the agent share one connection per world, which cannot write;
`fresh` queries (grading) each get one of their own, closed afterwards. A statement with `save` runs on a copy, which
is written to that path as a new image when it succeeds: a worker that dies takes nothing with it.

Not covered: an exploitable bug in SQLite itself would run as the user; this is no sandbox for native code.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from typing import Any

from .databases import open_file, open_image, read_image
from .execute import run_query
from .guards import MAX_CELL_BYTES, MAX_CELL_BYTES_OF_FILES, bare
from .schema import read_schema
from .states import run_change, state_of

WORLDS_KEPT = 512
"""Worlds in memory; a world that fell out is sent again by the host."""
IMAGE_BYTES_KEPT = 64 << 20
"""Bytes of their images; each exists twice, and a third time while it is graded."""
FILE_BYTES = 2 << 20
"""What an open file counts for: its page cache and its schema."""


class OpenWorld:
    """One world: where its connections come from, and the one that the agent's queries share."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._file = (spec["folder"], spec["file"]) if "file" in spec else None
        self.spec = spec
        self._image = b"" if self._file else read_image(spec)
        self._limit = MAX_CELL_BYTES if "tables" in spec else MAX_CELL_BYTES_OF_FILES
        self.shared = self.open()

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""
        return len(self._image) or FILE_BYTES

    def open(self) -> sqlite3.Connection:
        """A connection of one's own that can only read."""
        if self._file is not None:
            return open_file(*self._file)
        return open_image(self._image, max_cell_bytes=self._limit)

    def open_writer(self) -> sqlite3.Connection:
        """A connection on a copy that may be changed."""
        image = self._image or read_image(self.spec)
        return open_image(image, changes=True, max_cell_bytes=self._limit)

    def reopen(self) -> None:
        """Give the agent's queries a new connection."""
        self.shared.close()
        self.shared = self.open()


class Worlds:
    """The most recently used worlds by key."""

    def __init__(self, kept: int = WORLDS_KEPT, kept_bytes: int = IMAGE_BYTES_KEPT) -> None:
        self._kept, self._kept_bytes = kept, kept_bytes
        self._worlds: OrderedDict[str, OpenWorld] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._worlds

    def add(self, key: str, spec: dict[str, Any], needed: Container[str] = ()) -> None:
        """Build a world and make room for it, keeping the `needed` ones."""
        world = OpenWorld(spec)
        others = [old for old in self._worlds if old not in needed]
        size = world.size + sum(old.size for old in self._worlds.values())
        while others and (len(self._worlds) >= self._kept or size > self._kept_bytes):
            size -= self._worlds[others[0]].size
            self.drop(others.pop(0))
        self._worlds[key] = world

    def drop(self, key: str) -> None:
        """Forget a world."""
        self._worlds.pop(key).shared.close()

    def run(self, query: dict[str, Any], time_s: float) -> dict[str, Any]:
        """Run one query within `time_s`, as its kind asks for."""
        key = query["world"]
        self._worlds.move_to_end(key)
        world = self._worlds[key]
        if query["kind"] == "schema":
            return _alone(world.open, lambda conn: read_schema(conn, query, time_s))
        if query["kind"] == "state":
            return _alone(world.open_writer, lambda conn: state_of(conn, query, time_s))
        if query["kind"] == "change":
            return _alone(world.open_writer, lambda conn: run_change(conn, query, time_s))
        if query["fresh"]:
            return _alone(world.open, lambda conn: run_query(conn, query, time_s))
        result = run_query(world.shared, query, time_s)
        if result.get("kind") == "memory":
            world.reopen()  # an out-of-memory error may leave the connection's caches large
        return result


def _alone(
    opener: Callable[[], sqlite3.Connection], run: Callable[[sqlite3.Connection], dict[str, Any]]
) -> dict[str, Any]:
    conn = opener()
    try:
        return run(conn)
    finally:
        conn.close()


def serve(read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
    """Answer frames until the host closes the pipe."""
    worlds = Worlds()
    while header := read(4):
        request = json.loads(read(struct.unpack(">I", header)[0]))
        payload = json.dumps(_answer(worlds, request)).encode()
        write(struct.pack(">I", len(payload)) + payload)


def _answer(worlds: Worlds, request: dict[str, Any]) -> dict[str, Any]:
    needed = {query["world"] for query in request["queries"]}
    try:
        for key, spec in request["worlds"].items():
            if key not in worlds:
                worlds.add(key, spec, needed)
    except (sqlite3.Error, ValueError, OverflowError, OSError, UnicodeError) as error:
        return {"broken": str(error)}
    missing = sorted(key for key in needed if key not in worlds)
    if missing:
        return {"missing": missing}
    until = time.monotonic() + request["total_s"]
    results: list[dict[str, Any]] = []
    for query in request["queries"]:
        try:
            results.append(worlds.run(query, until - time.monotonic()))
        except (sqlite3.Error, OSError) as error:  # a file that is gone or damaged meanwhile
            return {"broken": str(error)}
        if "error" in results[-1]:
            break
    return {"results": results}


def limit_memory(memory_mb: int) -> None:
    """Bound SQLite's heap and, where the system allows it, the process's address space."""
    bare().execute(f"PRAGMA hard_heap_limit={memory_mb * 1024 * 1024 // 2}")
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


def main() -> None:
    """Serve on standard input and output; the first argument is the memory limit in MB."""
    limit_memory(int(sys.argv[1]))
    serve(sys.stdin.buffer.read, _write)

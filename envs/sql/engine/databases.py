"""From a world's description to a connection that is guarded.

{"tables": [{"name", "columns", "rows"}]}      built in memory, kept as an immutable image
{"folder": ..., "file": ...}                   a file beneath a user's folder, opened read-only and immutable
{"base": description, "changes": path | null}  the database of a task that changes data, as it stands now
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from .guards import MAX_CELL_BYTES, MAX_CELL_BYTES_OF_FILES, MAX_MB_WRITTEN, guard

GROWTH_BYTES = 1 << 20
"""A database that a task changes may grow to four times its size and this many bytes more."""


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


def open_image(
    image: bytes, *, changes: bool = False, max_cell_bytes: int = MAX_CELL_BYTES
) -> sqlite3.Connection:
    """Open a guarded connection on a copy of the image."""
    # Statements are not cached: a short query can compile to megabytes, and those of one agent would be another's want.
    conn = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=0)
    conn.deserialize(image)
    if changes:
        most = min(MAX_MB_WRITTEN << 20, 4 * len(image) + GROWTH_BYTES)
        conn.execute(f"PRAGMA max_page_count={most // _page_size(conn)}")
    guard(conn, changes=changes, max_cell_bytes=max_cell_bytes)
    return conn


def _page_size(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA page_size").fetchone()[0])


def open_file(folder: str, file: str) -> sqlite3.Connection:
    """Open a guarded connection on a file beneath `folder`; no link is followed, no journal looked for.

    Raises:
        OSError: there is no such regular file, or a link is in the way.
        sqlite3.Error: it cannot be opened.
    """
    handle = open_beneath(folder, file)
    try:
        where = f"file:/proc/self/fd/{handle}" if os.path.isdir("/proc/self/fd") else f"file:/dev/fd/{handle}"
        conn = sqlite3.connect(
            f"{where}?mode=ro&immutable=1",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=0,
        )
        try:
            conn.execute("PRAGMA cache_size=-1024")
            conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the file
            guard(conn, max_cell_bytes=MAX_CELL_BYTES_OF_FILES)
        except BaseException:
            conn.close()
            raise
        return conn
    finally:
        os.close(handle)


def open_beneath(folder: str, file: str) -> int:
    """A descriptor of a regular file beneath `folder`, each step taken without following links.

    Raises:
        OSError: there is no such regular file, or a link is in the way.
    """
    parts = file.split("/")
    if not parts or any(part in ("", ".", "..") for part in parts):
        raise OSError(f"a database is named by a path beneath its folder, got {file!r}")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, flags, dir_fd=directory)
            os.close(directory)
            directory = below
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(parts[-1], flags, dir_fd=directory)
    finally:
        os.close(directory)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{file!r} is no regular file")
    return handle


def read_image(world: dict[str, Any]) -> bytes:
    """The image of a world, for tasks that change data.

    Raises:
        OSError, ValueError: it cannot be read or is too large to be changed.
    """
    if "tables" in world:
        return build_image(world)
    if "base" in world:
        return Path(world["changes"]).read_bytes() if world["changes"] else read_image(world["base"])
    with os.fdopen(open_beneath(world["folder"], world["file"]), "rb") as file:
        image = file.read((MAX_MB_WRITTEN << 20) + 1)
    if len(image) > MAX_MB_WRITTEN << 20:
        raise ValueError(f"a database that a task changes has at most {MAX_MB_WRITTEN} MB")
    if image[18:20] == b"\x02\x02":
        image = image[:18] + b"\x01\x01" + image[20:]  # a database in memory knows no write-ahead log
    return image

"""A database behind SQLAlchemy: SQLite in the run's folder, or any URL."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import OperationalError

from agent_rl.storage import tables
from agent_rl.storage.errors import StorageFull

FILE = "store.sqlite"
_BUSY_MS = 20_000
_PG_DISK_FULL = "53100"
_LITTLE = 1 << 20
"""Bytes; with fewer left, a failed input or output of SQLite is for lack of space."""


class Database:
    """Opens one short transaction at a time; holds no connection in between."""

    def __init__(self, run_dir: Path, url: str = "") -> None:
        self.path = run_dir / FILE
        # One connection a transaction: none is left open in a worker thread or across a fork.
        if url:
            self.engine = create_engine(url, poolclass=NullPool)
        else:
            self.engine = create_engine(f"sqlite:///{self.path}", poolclass=NullPool)
            event.listen(self.engine, "connect", _tune_sqlite)

    def create(self) -> None:
        """Make the tables that are missing.

        Raises:
            StorageFull: there is no space.
        """
        with self._full_disks():
            tables.metadata.create_all(self.engine)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction: committed as a whole, or not at all.

        Raises:
            StorageFull: there is no space; the database is as it was before.
        """
        with self._full_disks(), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _full_disks(self) -> Iterator[Engine]:
        try:
            yield self.engine
        except OperationalError as error:
            reason = _full(error.orig, self.path.parent)
            if reason is None:
                raise
            raise StorageFull(self.path, None, reason) from error


def _tune_sqlite(connection: Any, record: object) -> None:
    """Readers do not wait for the writer, writers wait for one another, and a commit survives a power cut."""
    del record
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _full(error: BaseException | None, folder: Path) -> str | None:
    """Why a driver's error means a full disk, or None."""
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        # A file size limit shows up as a failed write, and a full disk as many kinds of failed input or output.
        full = name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR_WRITE")
        full = full or (name.startswith("SQLITE_IOERR") and shutil.disk_usage(folder).free < _LITTLE)
        return str(error) if full else None
    return str(error) if getattr(error, "sqlstate", None) == _PG_DISK_FULL else None

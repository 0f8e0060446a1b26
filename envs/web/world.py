"""The server's side of an episode: a database filled by a seed, a clock, sessions; graded from outside."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, MetaData, create_engine, insert, select
from sqlalchemy.pool import StaticPool

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
"""The rows of each table, by its name."""

MAX_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class WorldState:
    """A copy of a world: the database file."""

    database: bytes


def filled(metadata: MetaData, rows: Rows) -> WorldState:
    """A database with these rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        engine = _engine(connection)
        with engine.begin() as transaction:
            metadata.create_all(transaction, checkfirst=False)
            for name, each in rows.items():
                if each:
                    transaction.execute(insert(metadata.tables[name]), list(each))
        return WorldState(connection.serialize())


def _engine(connection: sqlite3.Connection) -> Engine:
    return create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)


class World:
    """One database in memory. It is used by one thread at a time, but threads may change."""

    def __init__(self, metadata: MetaData, rows: Rows | WorldState, *, now: str, secret: str) -> None:
        """Fill a database with rows, or continue from a copy.

        Args:
            metadata: the tables.
            rows: what stands in them, or the state of a world with the same tables.
            now: what the site's clock shows, as ISO text; it does not move.
            secret: names the sessions' tokens; nobody but the server knows it.
        """
        self.metadata = metadata
        self.now = now
        self._secret = secret.encode()
        state = rows if isinstance(rows, WorldState) else filled(metadata, rows)
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.deserialize(state.database)
        self._engine = _engine(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One request's work: committed as a whole, or not at all."""
        with self._engine.begin() as connection:
            yield connection

    def token(self, number: int) -> str:
        """The unguessable name of session `number`."""
        return hmac.new(self._secret, str(number).encode(), hashlib.sha256).hexdigest()[:32]

    def rows(self) -> dict[str, list[Row]]:
        """All rows of all tables, sessions left out: what a grader looks at."""
        with self._engine.begin() as connection:
            return {
                name: [dict(row) for row in connection.execute(select(table)).mappings()]
                for name, table in self.metadata.tables.items()
                if name != "sessions"
            }

    def copy(self) -> WorldState:
        """The whole database, sessions included."""
        return WorldState(self._connection.serialize())

    def digest(self) -> str:
        """A name for the database's content, equal for equal content."""
        hashed = hashlib.blake2b(digest_size=16)
        for name, table in sorted(self.metadata.tables.items()):
            columns = ", ".join(c.name for c in table.columns)
            for row in self._connection.execute(f"SELECT {columns} FROM {name} ORDER BY rowid"):
                hashed.update(repr((name, row)).encode())
        return hashed.hexdigest()

    def close(self) -> None:
        """Forget everything; safe to call twice."""
        self._engine.dispose()
        self._connection.close()

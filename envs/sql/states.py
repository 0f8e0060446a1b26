"""The database of an episode that changes data: immutable images, each made from the one before by one statement.

An image is a file in the temporary folder that only this user can read. It lives as long as something refers to it: an
environment, or a snapshot, which shares it. A worker makes it and then forgets it, so that no worker's death costs an
episode its data.
"""

from __future__ import annotations

import os
import tempfile
import uuid
import weakref
from pathlib import Path

from envs.sql import pool
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, Rows, World


class State:
    """A database as it stands: the task's own, or an image that statements made of it."""

    def __init__(self, base: World, path: str | None = None) -> None:
        """A `path` belongs to this state and is removed with it."""
        self.base = base
        self.world = World({"base": dict(base.spec), "changes": path})
        if path is not None:
            weakref.finalize(self, _remove, path, os.getpid())

    def run(self, query: Query, ticket: Ticket | None) -> tuple[Rows | Failed, State]:
        """Run one statement on a copy; return its result and what the database is then.

        Raises:
            QueryInterrupted: `ticket.interrupt()` was called.
        """
        result = pool.run([query], ticket)[0]
        if not (isinstance(result, Failed) and refused(result)):
            return result, self
        path = str(Path(tempfile.gettempdir(), f"agent-rl-sql-{uuid.uuid4().hex}.db"))
        change = Query(
            world=self.world,
            sql=query.sql,
            kind="change",
            save=path,
            max_rows=query.max_rows,
            max_count=query.max_count,
            max_cell=query.max_cell,
            time_s=query.time_s,
        )
        try:
            result = pool.run([change], ticket)[0]
        except BaseException:
            _remove(path, os.getpid())
            raise
        if isinstance(result, Failed) or not result.saved:
            _remove(path, os.getpid())
            return result, self
        return result, State(self.base, path)


def refused(failed: Failed) -> bool:
    """Whether a statement was refused because it does not only read."""
    return failed.message in ("not authorized", "authorization denied")


def _remove(path: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child does not clean up after its parent
        Path(path).unlink(missing_ok=True)

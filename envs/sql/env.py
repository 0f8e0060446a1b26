"""The environment `sql-v1`: look at a database, try queries, submit one SELECT."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from envs.base import PolicySpec
from envs.formats import Format
from envs.sql import pool
from envs.sql.answers import read_answer
from envs.sql.formats import FORMATS
from envs.sql.grading import grade
from envs.sql.policies import policies
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, World
from envs.sql.splits import split_keys
from envs.sql.tasks import ENV_ID, LEVELS, generate
from envs.sql.tools import describe_text, failure_text, list_text, rows_text
from envs.sql.trivial import trivial_policies
from envs.sql.worldspec import read_shown, read_time, read_world
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from tools.errors import ToolError
from tools.schema import tool

MAX_ROWS = 50
MAX_ROWS_LEVEL_0 = 20
MAX_CELL_CHARS = 200
MAX_ROWS_COUNTED = 100_000
TRY_TIME_S = 5.0
"""Seconds for a query of the agent's own, where the task's queries may take longer."""


class SqlEnv(ToolEnv):
    """Answer a question about a SQLite database; reward 1 if the submitted SQL gives what the gold SQL gives.

    The database is read-only, so the whole state of an episode is what the agent has seen: snapshots are
    copies of that, and `state_key` names it.
    """

    id: ClassVar[str] = ENV_ID
    levels: ClassVar[tuple[int, ...]] = LEVELS
    formats: ClassVar[Mapping[str, Format]] = FORMATS
    max_turns: int = 12
    tool_timeout_s: ClassVar[float] = 300.0
    """A query has its own limit of 2 s; this one covers waiting for a free worker."""

    _database: World
    _tables: Sequence[dict[str, Any]]
    _time_s: float
    _ticket: Ticket | None = None
    _seen: frozenset[str]
    _submitted: str | None

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """`n` generated tasks; options: `level` (0 to 4, default 0), `verbose` (a system message with guidance)."""
        unknown = sorted(set(options) - {"level", "verbose"})
        if unknown:
            raise ValueError(f"the options of sql-v1 tasks are level and verbose, got {unknown[0]!r}")
        return generate(split, n, seed, **options)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Scripted policies by name: gold, sloppy, noop and attacks."""
        return policies()

    @classmethod
    def trivial_policies(cls, tasks: Sequence[Task]) -> dict[str, PolicySpec]:
        """Literal results, frequent golds and lists of candidates."""
        return trivial_policies(tasks)

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """The database and each sibling by content, and the prompt with its numbers masked."""
        return split_keys(task)

    @tool
    def list_tables(self) -> str:
        """List the tables."""
        return self._saw(list_text(self._tables))

    @tool
    def describe(self, table: str) -> str:
        """Show the columns of a table."""
        return self._saw(describe_text(self._tables, table))

    @tool
    def run_sql(self, sql: str) -> str:
        """Run one SELECT and show its rows."""
        level_0 = self.task.data.get("level") == 0
        query = Query(
            world=self._database,
            sql=sql,
            max_rows=MAX_ROWS_LEVEL_0 if level_0 else MAX_ROWS,
            max_count=MAX_ROWS_COUNTED,
            max_cell=MAX_CELL_CHARS,
            time_s=min(self._time_s, TRY_TIME_S),
        )
        result = pool.run([query], self._ticket)[0]
        if isinstance(result, Failed):
            raise ToolError(self._saw(failure_text(result, min(self._time_s, TRY_TIME_S))))
        return self._saw(rows_text(result))

    @tool
    def submit(self, sql: str) -> str:
        """Submit the SELECT that answers the question."""
        self._submitted = sql
        self.finish()
        return "submitted"

    def setup(self, task: Task) -> None:
        """Read the task; the database itself is built by a worker at the first query."""
        self._database = read_world(task.data)
        self._tables = read_shown(task.data, self._database)
        self._time_s = read_time(task.data)
        self._ticket = Ticket()
        self._seen = frozenset()
        self._submitted = None

    def grade(self) -> Reward:
        """Compare the submission's results with gold's on fresh copies of the database and its siblings."""
        answer = read_answer(self.task.answer, self._time_s)
        return grade(self._submitted, answer, [self._database, *answer.siblings], self._ticket)

    def state_key(self) -> str:
        """Names what the agent knows: the task and the set of everything it was shown."""
        text = "\n".join([self.task.id, *sorted(self._seen)])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def copy_state(self) -> tuple[frozenset[str], str | None]:
        """What the agent has seen and submitted; the database cannot change."""
        return self._seen, self._submitted

    def load_state(self, state: tuple[frozenset[str], str | None]) -> None:
        """Continue from `copy_state`."""
        self.setup(self.task)
        self._seen, self._submitted = state

    def interrupt(self) -> None:
        """End the running query by killing its worker."""
        super().interrupt()
        if self._ticket is not None:
            self._ticket.interrupt()

    def _saw(self, text: str) -> str:
        self._seen |= {hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()}
        return text

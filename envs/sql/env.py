"""The environment `sql-v1`: look at a database, try queries, submit one SELECT."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.base import PolicySpec
from envs.formats import Format
from envs.sql import pool
from envs.sql.answers import check_rule, read_answer
from envs.sql.changes import grade_changes
from envs.sql.formats import FORMATS
from envs.sql.grading import grade
from envs.sql.policies import policies
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, Rows, World
from envs.sql.splits import split_keys
from envs.sql.states import State
from envs.sql.tasks import ENV_ID, LEVELS, generate
from envs.sql.tools import describe_text, failure_text, list_text, rows_text
from envs.sql.trivial import trivial_policies
from envs.sql.worldspec import changes_data, read_shown, read_time, read_world
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


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a snapshot holds."""

    seen: frozenset[str]
    submitted: str | None
    changed: tuple[str, ...]
    state: State | None


class SqlEnv(ToolEnv):
    """Answer a question about a SQLite database; reward 1 if the submitted SQL gives what the gold SQL gives.

    The database is read-only, so the whole state of an episode is what the agent has seen: snapshots are
    copies of that, and `state_key` names it. A task with `changes` has a database of its own, which is what is graded.
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
    _state: State | None = None
    _changed: tuple[str, ...]
    _seen: frozenset[str]
    _submitted: str | None

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """`n` generated tasks.

        Options: `level` (0 to 4, default 0), `verbose` (a system message with guidance), `changes` (the tasks
        change the database).
        """
        unknown = sorted(set(options) - {"level", "verbose", "changes"})
        if unknown:
            raise ValueError(
                f"the options of sql-v1 tasks are level, verbose and changes, got {unknown[0]!r}"
            )
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
        result = self._query(sql)
        if isinstance(result, Failed):
            time_s = min(self._time_s, TRY_TIME_S)
            raise ToolError(self._saw(failure_text(result, time_s, changes=self._state is not None)))
        return self._saw(rows_text(result))

    @tool
    def submit(self, sql: str) -> str:
        """Submit the SELECT that answers the question."""
        self._submitted = sql
        if self._state is not None and sql.strip():
            self._query(sql)  # the last change; one that fails leaves the database as it was
        self.finish()
        return "submitted"

    def setup(self, task: Task) -> None:
        """Read the task; the database itself is built by a worker at the first query."""
        self._database = read_world(task.data)
        self._tables = read_shown(task.data, self._database)
        self._time_s = read_time(task.data)
        self._state = State(self._database) if changes_data(task.data) else None
        self._changed = ()
        self._ticket = Ticket()
        self._seen = frozenset()
        self._submitted = None

    def grade(self) -> Reward:
        """Compare the submission's results with gold's on fresh copies of the database and its siblings."""
        answer = read_answer(self.task.answer, self._time_s)
        check_rule(self.task.data, answer)
        if self._state is not None:
            return grade_changes(self._submitted is not None, answer, self._state, self._ticket)
        return grade(self._submitted, answer, [self._database, *answer.siblings], self._ticket)

    def state_key(self) -> str:
        """Names what the agent knows and changed: the task, the set of all it was shown, its changes in order."""
        text = "\n".join([self.task.id, *sorted(self._seen), *self._changed])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def copy_state(self) -> _Kept:
        """What the agent has seen, submitted and changed; an image of the database is shared, never written to."""
        return _Kept(self._seen, self._submitted, self._changed, self._state)

    def load_state(self, state: _Kept) -> None:
        """Continue from `copy_state`."""
        self.setup(self.task)
        self._seen, self._submitted = state.seen, state.submitted
        self._changed, self._state = state.changed, state.state

    def teardown(self) -> None:
        """Let go of the episode's database."""
        self._state = None

    def interrupt(self) -> None:
        """End the running query by killing its worker."""
        super().interrupt()
        if self._ticket is not None:
            self._ticket.interrupt()

    def _query(self, sql: str) -> Rows | Failed:
        """Run a statement of the agent's, on the episode's own database where the task changes data."""
        state = self._state
        query = Query(
            world=self._database if state is None else state.world,
            sql=sql,
            max_rows=MAX_ROWS_LEVEL_0 if self.task.data.get("level") == 0 else MAX_ROWS,
            max_count=MAX_ROWS_COUNTED,
            max_cell=MAX_CELL_CHARS,
            time_s=min(self._time_s, TRY_TIME_S),
        )
        if state is None:
            return pool.run([query], self._ticket)[0]
        result, self._state = state.run(query, self._ticket)
        if self._state is not state:
            self._changed += (sql,)
        return result

    def _saw(self, text: str) -> str:
        self._seen |= {hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()}
        return text

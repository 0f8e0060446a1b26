"""The environment `sql-v1`: look at a database, try queries, submit one SELECT."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from envs.base import PolicySpec
from envs.errors import TaskError
from envs.sql import pool
from envs.sql.grading import grade
from envs.sql.policies import policies
from envs.sql.pool import Ticket
from envs.sql.queries import QUERY_TIME_S, Failed, Query, Rule, World
from envs.sql.tasks import ENV_ID, generate
from envs.sql.tools import describe_text, failure_text, list_text, rows_text
from envs.sql.worldspec import read_world
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from tools.errors import ToolError
from tools.schema import tool

MAX_ROWS = 50
MAX_ROWS_LEVEL_0 = 20
MAX_CELL_CHARS = 200
MAX_ROWS_COUNTED = 100_000


class SqlEnv(ToolEnv):
    """Answer a question about a SQLite database; reward 1 if the submitted SQL gives what the gold SQL gives.

    The database is read-only, so the whole state of an episode is what the agent has seen: snapshots are
    copies of that, and `state_key` names it.
    """

    id: ClassVar[str] = ENV_ID
    max_turns: int = 12
    tool_timeout_s: ClassVar[float] = 300.0
    """A query has its own limit of 2 s; this one covers waiting for a free worker."""

    _database: World
    _tables: Sequence[dict[str, Any]]
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
        )
        result = pool.run([query], self._ticket)[0]
        if isinstance(result, Failed):
            raise ToolError(self._saw(failure_text(result, QUERY_TIME_S)))
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
        self._tables = self._database.spec["tables"]
        self._ticket = Ticket()
        self._seen = frozenset()
        self._submitted = None

    def grade(self) -> Reward:
        """Compare the submission's results with gold's on fresh copies of the database and its siblings."""
        answer = self.task.answer
        if not isinstance(answer, Mapping) or not isinstance(answer.get("sql"), str):
            raise TaskError("the answer of a sql-v1 task is an object with the gold query under 'sql'")
        rule: Rule = answer.get("rule", "bag")
        if rule not in ("bag", "ordered"):
            raise TaskError(f"the rule of a sql-v1 task is 'bag' or 'ordered', got {rule!r}")
        worlds = [self._database, *(read_world(spec) for spec in answer.get("siblings", ()))]
        return grade(self._submitted, answer["sql"], rule, worlds, self._ticket)

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

"""Judges a submission: its SQL against the gold SQL, on the task's database and on its siblings, by result.

| what | rule |
|---|---|
| where | a fresh read-only copy of each database; the one that the agent used is not touched |
| which databases | the task's own and every sibling: same schema, other rows; so a literal answer cannot be right |
| rows | `bag`: equal as multisets; `ordered`: equal in order |
| values | by column position; floats equal within 1e-9; text never equals a number; NULL equals NULL |
| column names | ignored |
| reward | `correct`, 1 if all results are equal, else 0; an error or a limit that was hit gives 0 |
"""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence

from envs.errors import TaskError
from envs.rewards import reward
from envs.sql import pool
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, Row, Rows, Rule, Value, World
from envs.types import Reward

TOLERANCE = 1e-9
GOLD_ROWS = 5000
"""A gold result may have at most this many rows."""
_GOLD_KEPT = 4096


class GoldError(TaskError):
    """A task's gold SQL failed: the task is at fault, not the submission."""


def equal_values(left: Value, right: Value) -> bool:
    """Compare two cells: a float and a number within 1e-9 (relative above 1), everything else exactly."""
    if isinstance(left, float | int) and isinstance(right, float | int):
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        return left == right or math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(left) is type(right) and left == right


def equal_rows(left: Row, right: Row) -> bool:
    """Compare two rows by column position."""
    return len(left) == len(right) and all(map(equal_values, left, right))


def equal_results(left: Sequence[Row], right: Sequence[Row], rule: Rule) -> bool:
    """Compare two results by the declared rule."""
    if len(left) != len(right):
        return False
    if rule == "ordered":
        return all(map(equal_rows, left, right))
    return _equal_bags(left, right)


def _equal_bags(left: Sequence[Row], right: Sequence[Row]) -> bool:
    # Python hashes 1 and 1.0 alike and keeps 1 and "1" apart, as the rule wants. What does not match exactly may
    # still match within the tolerance, row by row.
    counts = Counter(left)
    counts.subtract(right)
    missing = list((+counts).elements())
    extra = list((-counts).elements())
    for row in extra:
        match = next((i for i, other in enumerate(missing) if equal_rows(row, other)), None)
        if match is None:
            return False
        missing.pop(match)
    return True


class _GoldResults:
    """Results of gold queries by world and SQL, the most recently used ones."""

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[str, str], tuple[Row, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, world: World, sql: str) -> tuple[Row, ...] | None:
        with self._lock:
            return self._rows.get((world.key, sql))

    def put(self, world: World, sql: str, rows: tuple[Row, ...]) -> None:
        with self._lock:
            self._rows[(world.key, sql)] = rows
            while len(self._rows) > _GOLD_KEPT:
                self._rows.popitem(last=False)


_GOLD = _GoldResults()


def gold_results(worlds: Sequence[World], sql: str, ticket: Ticket | None = None) -> list[tuple[Row, ...]]:
    """Results of the gold SQL on each world, from memory where known.

    Raises:
        GoldError: the gold SQL failed.
    """
    known = [_GOLD.get(world, sql) for world in worlds]
    unknown = [world for world, rows in zip(worlds, known, strict=True) if rows is None]
    if not unknown:
        return [rows for rows in known if rows is not None]
    fresh: dict[str, tuple[Row, ...]] = {}
    # The workers answer up to the first query that fails, so a failure is the last of the answers.
    for world, answer in zip(
        unknown, pool.run([_query(w, sql, GOLD_ROWS) for w in unknown], ticket), strict=False
    ):
        if isinstance(answer, Failed):
            raise GoldError(f"the gold SQL of a task must run, but SQLite says: {answer.message}")
        _GOLD.put(world, sql, answer.rows)
        fresh[world.key] = answer.rows
    return [fresh[w.key] if rows is None else rows for w, rows in zip(worlds, known, strict=True)]


def is_correct(
    submitted: str, gold: str, rule: Rule, worlds: Sequence[World], ticket: Ticket | None = None
) -> tuple[bool, bool]:
    """Whether the submitted SQL ran everywhere, and whether all its results equal gold's.

    Raises:
        GoldError: the gold SQL failed.
        QueryInterrupted: the harness gave up.
    """
    expected = gold_results(worlds, gold, ticket)
    queries = [_query(w, submitted, len(rows) + 1) for w, rows in zip(worlds, expected, strict=True)]
    answers = pool.run(queries, ticket)
    if isinstance(answers[-1], Failed):
        return False, False
    given = [answer.rows for answer in answers if isinstance(answer, Rows)]
    return True, all(equal_results(g, e, rule) for g, e in zip(given, expected, strict=True))


def grade(
    submitted: str | None, gold: str, rule: Rule, worlds: Sequence[World], ticket: Ticket | None = None
) -> Reward:
    """Reward of an episode; `submitted` is None when nothing was submitted.

    `correct` has weight 1; `runs` has weight 0 and tells wrong answers from broken ones.
    """
    if submitted is None:
        return reward(correct=0.0, runs=(0.0, 0.0))
    ran, correct = is_correct(submitted, gold, rule, worlds, ticket)
    return reward(correct=float(correct), runs=(float(ran), 0.0))


def _query(world: World, sql: str, max_rows: int) -> Query:
    return Query(world=world, sql=sql, fresh=True, max_rows=max_rows)

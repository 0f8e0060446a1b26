"""Judges a submission: its SQL against the gold SQL, on the task's database and on its siblings, by result.

| what | rule |
|---|---|
| where | a fresh read-only copy of each database; the one that the agent used is not touched |
| which databases | the task's own and every sibling: same schema, other rows; so a literal answer cannot be right |
| rows, columns, cells | by the task's rule: see `comparison` |
| time | each query within its own limit, all of a submission within 60 s; a verdict of a limit is made again alone |
| reward | `correct`, 1 if all results are equal, else 0; an error or a limit that was hit gives 0 |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envs.grading import judged
from envs.rewards import reward
from envs.sql import pool
from envs.sql.answers import Answer
from envs.sql.changes import check_changes
from envs.sql.comparison import equal_results
from envs.sql.golds import KNOWN, GoldError, gold_error
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, Row, Rows, World
from envs.sql.spelling import is_ordered, spider_spelling
from envs.sql.tolerance import Gold, matches, matches_any
from envs.types import Reward

__all__ = ["GOLD_ROWS", "GoldError", "check_gold", "gold_results", "grade", "is_correct"]

GOLD_ROWS = 5000
"""A gold result may have at most this many rows."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What grading found: did the submission run everywhere, is it right; what limit or gold failure came between."""

    ran: bool = False
    correct: bool = False
    timed_out: bool = False
    gold_failed: str = ""


def gold_results(
    worlds: Sequence[World], answer: Answer, ticket: Ticket | None = None
) -> list[tuple[Row, ...]] | Failed:
    """Results of the gold SQL on each world, from memory where known; or how it failed."""
    sql = _spelled(answer.sql, answer)
    known = [KNOWN.get(world, sql) for world in worlds]
    unknown = [world for world, rows in zip(worlds, known, strict=True) if rows is None]
    fresh: dict[str, tuple[Row, ...]] = {}
    if unknown:
        queries = [_query(world, sql, GOLD_ROWS + 1, answer) for world in unknown]
        # The workers answer up to the first query that fails, so a failure is the last of the answers.
        for world, found in zip(unknown, pool.run(queries, ticket), strict=False):
            if isinstance(found, Failed):
                return found
            if len(found.rows) > GOLD_ROWS:
                return Failed("memory", f"it gives more than {GOLD_ROWS} rows")
            KNOWN.put(world, sql, found.rows)
            fresh[world.key] = found.rows
    return [fresh[w.key] if rows is None else rows for w, rows in zip(worlds, known, strict=True)]


def check_gold(answer: Answer, worlds: Sequence[World]) -> list[tuple[Row, ...]]:
    """Run a gold on all its databases and return its results; of one that changes data there are none.

    Raises:
        GoldError: it failed, hit a limit, or was to change data and changes none.
    """
    if answer.rule == "state":
        check_changes(answer, worlds[0])
        return []
    found = gold_results(worlds, answer)
    if isinstance(found, Failed):
        raise gold_error(found.message if found.kind == "sql" else f"{found.kind}: {found.message}")
    return found


def is_correct(
    submitted: str, answer: Answer, worlds: Sequence[World], ticket: Ticket | None = None
) -> tuple[bool, bool]:
    """Whether the submitted SQL ran everywhere, and whether all its results equal gold's.

    Raises:
        GoldError: the gold SQL failed.
        QueryInterrupted: the harness gave up.
    """
    verdict = judged(lambda: _judge(submitted, answer, worlds, ticket), timed_out=lambda v: v.timed_out)
    if verdict.gold_failed:
        raise gold_error(verdict.gold_failed)
    return verdict.ran, verdict.correct


def _judge(submitted: str, answer: Answer, worlds: Sequence[World], ticket: Ticket | None) -> Verdict:
    expected: list[tuple[Row, ...]] = []
    if not answer.results:
        gold = gold_results(worlds, answer, ticket)
        if isinstance(gold, Failed):
            return Verdict(gold_failed=gold.message, timed_out=gold.kind == "time")
        expected = gold
    most = [len(rows) for rows in expected] or [max(len(each.rows) for each in answer.results)] * len(worlds)
    # A set is as long as its submission likes: duplicates do not count.
    limits = [GOLD_ROWS if answer.rule == "set" else rows + 1 for rows in most]
    sql = _spelled(submitted, answer)
    queries = [_query(w, sql, limit, answer) for w, limit in zip(worlds, limits, strict=True)]
    found = pool.run(queries, ticket)
    last = found[-1]
    if isinstance(last, Failed):
        return Verdict(timed_out=last.kind == "time")
    if answer.rule == "set" and any(isinstance(each, Rows) and each.left_out for each in found):
        return Verdict(ran=True)  # what lies beyond the limit was not compared
    given = [each.rows for each in found if isinstance(each, Rows)]
    return Verdict(ran=True, correct=_all_equal(given, expected, answer))


def _all_equal(given: Sequence[Sequence[Row]], expected: Sequence[Sequence[Row]], answer: Answer) -> bool:
    if answer.results:
        return matches_any(given[0], answer.results, ignore_order=answer.ignore_order)
    if answer.rule == "spider2":
        golds = [Gold(rows=tuple(rows), columns=answer.columns) for rows in expected]
        return all(
            matches(g, gold, ignore_order=answer.ignore_order) for g, gold in zip(given, golds, strict=True)
        )
    ordered = is_ordered(answer.sql)
    return all(
        equal_results(g, e, answer.rule, ordered=ordered) for g, e in zip(given, expected, strict=True)
    )


def grade(
    submitted: str | None, answer: Answer, worlds: Sequence[World], ticket: Ticket | None = None
) -> Reward:
    """Reward of an episode; `submitted` is None when nothing was submitted.

    `correct` has weight 1; `runs` has weight 0 and tells wrong answers from broken ones.
    """
    if submitted is None:
        return reward(correct=0.0, runs=(0.0, 0.0))
    ran, correct = is_correct(submitted, answer, worlds, ticket)
    return reward(correct=float(correct), runs=(float(ran), 0.0))


def _spelled(sql: str, answer: Answer) -> str:
    return spider_spelling(sql, keep_distinct=answer.keep_distinct) if answer.rule == "spider" else sql


def _query(world: World, sql: str, max_rows: int, answer: Answer) -> Query:
    return Query(world=world, sql=sql, fresh=True, max_rows=max_rows, max_count=1, time_s=answer.time_s)

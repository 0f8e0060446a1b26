"""What the generator runs by itself: trusted databases, results as SQL, and drafts of tasks that change data."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

from envs.sql.change_templates import CHANGES
from envs.sql.engine.databases import create_tables
from envs.sql.engine.states import bag_digest
from envs.sql.queries import Row
from envs.sql.questions import Question, ask
from envs.sql.schemas import DOMAINS
from envs.sql.worlds import draw_blueprint, fill
from envs.types import Split


def open_trusted(spec: dict[str, Any]) -> sqlite3.Connection:
    """A database in this process, without a worker: the generator's own SQL is trusted."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(database, spec)
    return database


def literal(rows: Sequence[Row]) -> str:
    """SQL that gives these rows on any database: what a grader with one database would let pass."""
    return "VALUES " + ", ".join("(" + ", ".join(map(spelled, row)) + ")" for row in rows)


def spelled(value: Any) -> str:
    """A value as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return repr(value)


def draft_change(
    rng: Random, split: Split, level: int
) -> tuple[Question, dict[str, Any], list[dict[str, Any]]] | None:
    """Draw a task that changes data, or None when gold changes nothing or a near miss leaves the same database."""
    blueprint = draw_blueprint(rng, rng.choice(DOMAINS), level, split)
    spec = fill(rng, blueprint)
    question = ask(rng, rng.choice(CHANGES[level]), blueprint, spec)
    if question is None:
        return None
    gold = _after(spec, question.sql)
    slips = [*question.slips.values(), *([question.guess] if question.guess != question.sql else [])]
    if gold == _after(spec, None) or any(_after(spec, slip) == gold for slip in slips):
        return None
    return question, spec, []


def _after(spec: dict[str, Any], sql: str | None) -> dict[str, str] | None:
    """The contents after a statement; None when it fails."""
    with closing(open_trusted(spec)) as database:
        try:
            if sql is not None:
                database.execute(sql)
        except sqlite3.Error:
            return None
        tables = [table["name"] for table in spec["tables"]]
        return {table: bag_digest(database.execute(f'SELECT * FROM "{table}"')) for table in tables}

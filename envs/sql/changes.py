"""Judges a task that changes data: the episode's database against the original after the gold statements.

Two databases are equal when they have the same tables with the same rows, in any order; floats count to 9 digits.
"""

from __future__ import annotations

import json

from envs.grading import judged
from envs.rewards import reward
from envs.sql import pool
from envs.sql.answers import Answer
from envs.sql.golds import KNOWN, gold_error
from envs.sql.pool import Ticket
from envs.sql.queries import Failed, Query, World
from envs.sql.states import State
from envs.types import Reward

Contents = dict[str, str]
"""A digest of each table's rows."""


def check_changes(answer: Answer, world: World) -> None:
    """Run the gold statements.

    Raises:
        GoldError: one failed or hit a limit, or they change nothing.
    """
    base = State(world).world
    gold = _contents(base, answer.script, answer, None)
    if isinstance(gold, Failed):
        raise gold_error(f"{gold.kind}: {gold.message}")
    if gold == _contents(base, (), answer, None):
        raise gold_error("nothing was changed: doing nothing would be right")


def grade_changes(submitted: bool, answer: Answer, state: State, ticket: Ticket | None = None) -> Reward:
    """Reward of an episode by what its database holds; nothing is right that was not submitted.

    Raises:
        GoldError: the gold statements failed.
        QueryInterrupted: the harness gave up.
    """
    if not submitted:
        return reward(correct=0.0, runs=(0.0, 0.0))

    def judge() -> tuple[Contents | Failed, Contents | Failed]:
        gold = _contents(State(state.base).world, answer.script, answer, ticket)
        return gold, _contents(state.world, (), answer, ticket)

    gold, given = judged(
        judge, timed_out=lambda both: any(isinstance(c, Failed) and c.kind == "time" for c in both)
    )
    if isinstance(gold, Failed):
        raise gold_error(gold.message)
    changed = state.world.spec["changes"] is not None
    return reward(correct=float(given == gold), runs=(float(changed), 0.0))


def _contents(
    world: World, script: tuple[str, ...], answer: Answer, ticket: Ticket | None
) -> Contents | Failed:
    original = world.spec["changes"] is None
    key = json.dumps(["state", *script])
    known: Contents | None = KNOWN.get(world, key) if original else None
    if known is not None:
        return known
    query = Query(world=world, sql="", kind="state", script=script, time_s=answer.time_s)
    found = pool.run([query], ticket)[0]
    if isinstance(found, Failed):
        return found
    if original:
        KNOWN.put(world, key, found.found)
    contents: Contents = found.found
    return contents

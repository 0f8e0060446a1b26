"""The verdict: the server's rows afterwards are the rows before, plus the goal's changes, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from envs.rewards import reward
from envs.snapshots import canonical_json
from envs.types import Reward
from envs.web.plans import Change
from envs.web.world import Row, Rows

FREE = frozenset({"placed_at", "created_at"})
"""Columns that the site's clock fills; they are not compared."""


def expected(before: Rows, changes: Iterable[Change]) -> dict[str, list[Row]]:
    """The rows after some changes."""
    after = {name: [dict(row) for row in rows] for name, rows in before.items()}
    for change in changes:
        rows = after[change.table]
        if change.kind == "add":
            rows.append(dict(change.values))
        elif change.kind == "set":
            next(row for row in rows if row["id"] == change.id).update(change.values)
        else:
            rows[:] = [row for row in rows if not _agrees(row, change.values)]
    return after


def _agrees(row: Row, values: Row) -> bool:
    return all(row[key] == value for key, value in values.items())


def same(before: Rows, wanted: Rows, found: Rows) -> bool:
    """Whether two states are equal, where `before` says which rows are old: new ones have no fixed id."""
    names = sorted({*before, *wanted, *found})
    return all(_counted(name, before, wanted) == _counted(name, before, found) for name in names)


def _counted(name: str, before: Rows, rows: Rows) -> Counter[str]:
    old = {row["id"] for row in before.get(name, ()) if "id" in row}
    return Counter(canonical_json(_named(row, old)) for row in rows.get(name, ()))


def _named(row: Row, old: set[Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in FREE and (k != "id" or v in old)}


def reached(before: Rows, changes: Sequence[Change], found: Rows) -> bool:
    """Whether each single change is there, whatever else happened."""
    return all(_is_there(change, before, found) for change in changes)


def _is_there(change: Change, before: Rows, found: Rows) -> bool:
    rows = found.get(change.table, ())
    if change.kind == "set":
        return any(row["id"] == change.id and _agrees(row, change.values) for row in rows)
    if change.kind == "delete":
        return not any(_agrees(row, change.values) for row in rows)
    old = [row for row in before.get(change.table, ()) if _agrees(row, change.values)]
    return sum(_agrees(row, change.values) for row in rows) > len(old)


def judge(before: Rows, changes: Sequence[Change], found: Mapping[str, Sequence[Row]]) -> Reward:
    """`solved` (weight 1): exactly the goal. `reached` (weight 0): the goal and perhaps more."""
    solved = same(before, expected(before, changes), found)
    return reward(solved=float(solved), reached=(float(reached(before, changes, found)), 0.0))

"""The rule `spider2`: every gold column is among the submitted ones, numbers within 0.01.

The result is compared as if it had been written to a CSV file and read back, which is how the golds are stored:
text that is a number counts as one, empty text and NULL count as 0. Where several golds are given, one must match.
Extra columns are allowed, but only so many: else a row of a hundred constants would contain most answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from envs.sql.queries import Row, Value

ABSOLUTE_TOLERANCE = 1e-2
EXTRA_COLUMNS = 8
"""Columns that a submission may have beyond those of the gold result."""

Cell = float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """One accepted result: its rows, and which of its columns count (empty: all of them)."""

    rows: tuple[Row, ...]
    columns: tuple[int, ...] = ()


def matches_any(given: Sequence[Row], golds: Sequence[Gold], *, ignore_order: bool) -> bool:
    """Whether a result matches one of the golds."""
    return any(matches(given, gold, ignore_order=ignore_order) for gold in golds)


def matches(given: Sequence[Row], gold: Gold, *, ignore_order: bool) -> bool:
    """Whether every gold column that counts equals one of the columns of `given`."""
    if len(given) != len(gold.rows) or not gold.rows:
        return len(given) == len(gold.rows)
    width = len(gold.rows[0])
    if len(given[0]) > width + EXTRA_COLUMNS:
        return False
    submitted = [_column(given, i, ignore_order) for i in range(len(given[0]))]
    wanted = gold.columns or tuple(range(width))
    return all(
        any(_equal(column, other) for other in submitted)
        for column in (_column(gold.rows, i, ignore_order) for i in wanted)
    )


def _column(rows: Sequence[Row], index: int, ignore_order: bool) -> list[Cell]:
    cells = [as_cell(row[index]) for row in rows]
    return sorted(cells, key=_place) if ignore_order else cells


def _place(cell: Cell) -> tuple[bool, float, str]:
    return (True, 0.0, cell) if isinstance(cell, str) else (False, cell, "")


def as_cell(value: Value) -> Cell:
    """A value as it comes back from a CSV file: a number or text; nothing is 0."""
    if value is None:
        return 0.0
    if isinstance(value, bytes):
        return repr(value)
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return 0.0
        try:
            value = float(text)
        except ValueError:
            return value
    try:
        number = float(value)
    except OverflowError:
        return str(value)
    return 0.0 if math.isnan(number) else number


def _equal(left: Sequence[Cell], right: Sequence[Cell]) -> bool:
    return all(map(_equal_cells, left, right))


def _equal_cells(left: Cell, right: Cell) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or math.isclose(left, right, abs_tol=ABSOLUTE_TOLERANCE)
    return left == right

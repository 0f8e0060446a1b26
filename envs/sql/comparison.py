"""Whether two results are equal, by the rule that a task names.

| rule | rows | columns | cells |
|---|---|---|---|
| `bag` | as multisets | by position | floats within 1e-9, text never equals a number |
| `ordered` | in order | by position | the same |
| `set` (BIRD, SynSQL) | as sets: order and duplicates ignored | by position | exactly, 1 equals 1.0 |
| `spider` | as multisets; in order if gold has ORDER BY | any permutation; empty equals empty | exactly |
| `spider2` | in order, or each column sorted | gold's are among the submitted | numbers within 0.01, NULL is 0 |

NULL equals NULL; names of columns are ignored. `spider2` is in `tolerance`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from envs.sql.queries import Row, Rule, Value

TOLERANCE = 1e-9
MAX_PERMUTATION_STEPS = 2000
"""Columns tried before two results count as different: a submission may be made to be hard to compare."""


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


def equal_results(left: Sequence[Row], right: Sequence[Row], rule: Rule, *, ordered: bool = False) -> bool:
    """Compare two results by `bag`, `ordered`, `set` or `spider`; `ordered` says for `spider` whether rows are."""
    if rule == "set":
        return set(left) == set(right)
    if rule == "spider":
        return equal_permuted(left, right, ordered=ordered)
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


def equal_permuted(left: Sequence[Row], right: Sequence[Row], *, ordered: bool) -> bool:
    """Whether some order of `right`'s columns makes the results equal, as bags of rows or in order.

    Columns are matched one after the other, so that the rows made of the columns matched so far are always equal;
    equal columns are tried once.
    """
    if not left and not right:
        return True
    if len(left) != len(right) or len(left[0]) != len(right[0]):
        return False
    columns = [list(column) for column in zip(*right, strict=True)]
    steps = 0

    def match(taken: list[int]) -> bool:
        nonlocal steps
        if len(taken) == len(columns):
            return True
        tried: set[tuple[Value, ...]] = set()
        wanted = _prefixes(left, range(len(taken) + 1), ordered)
        for i, column in enumerate(columns):
            key = tuple(column)
            if i in taken or key in tried:
                continue
            tried.add(key)
            steps += 1
            if steps > MAX_PERMUTATION_STEPS:
                return False
            if _prefixes(right, [*taken, i], ordered) == wanted and match([*taken, i]):
                return True
        return False

    return match([])


def _prefixes(rows: Sequence[Row], columns: Sequence[int], ordered: bool) -> object:
    picked = [tuple(row[i] for i in columns) for row in rows]
    return picked if ordered else Counter(picked)

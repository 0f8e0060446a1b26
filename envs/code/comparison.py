"""When a result counts as the expected one. Runs on the host, on decoded values that are truly built-in.

| rule | two values agree when |
|---|---|
| `exact` | types are the same all the way down (`True` is not `1`, `1` is not `1.0`) and values are equal |
| `equal` | Python's `==` holds |
| `truth` | both are true or both are false |
| `sequence` | both are lists or tuples with equal items |
| `members` | both have the same members, as sets |
| `sorted` | both have the same items, order aside |
| `json` | they are equal once tuples are lists, as JSON would have them; floats within 1e-9 |
| `close` | they are equal once tuples are lists; floats agree within the tolerance, relative or absolute |
| `stdio` | the lines are the same once whitespace around them is dropped, or have equal numbers word by word |
| `text` | the lines are the same once whitespace at their ends and empty lines at the end are dropped |

Under `exact` NaN agrees with NaN. A declared `tolerance` lets floats differ relatively under `exact`, and two
numbers differ absolutely under `equal`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from envs.code.driver import encode

RuleName = Literal[
    "exact", "equal", "truth", "sequence", "members", "sorted", "json", "close", "stdio", "text"
]
JSON_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Rule:
    """How results of one test are compared; see the table above."""

    name: RuleName = "exact"
    tolerance: float | None = None


def agree(expected: Any, actual: Any, rule: Rule) -> bool:
    """Whether `actual` is right, by `rule`."""
    if rule.name == "text":
        return isinstance(actual, str) and _lines(expected) == _lines(actual)
    if rule.name == "stdio":
        return isinstance(actual, str) and _same_output(expected, actual)
    if rule.name in ("members", "sorted"):
        return _same_items(expected, actual, as_set=rule.name == "members")
    if rule.name in ("json", "close"):
        return _close(expected, actual, rule.tolerance or JSON_TOLERANCE)
    if rule.name == "truth":
        return bool(expected) == bool(actual)
    if rule.name == "sequence":
        return isinstance(actual, (list, tuple)) and tuple(expected) == tuple(actual)
    if rule.name == "equal":
        if rule.tolerance is not None and _is_number(expected):
            return _is_number(actual) and abs(actual - expected) < rule.tolerance
        return bool(expected == actual)
    return _exact(expected, actual, rule.tolerance)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _same_items(expected: Any, actual: Any, *, as_set: bool) -> bool:
    """By encoded form, so that items need no hash and no order."""
    if not all(isinstance(value, (list, tuple, set, frozenset)) for value in (expected, actual)):
        return False
    left, right = ([json.dumps(encode(item)) for item in value] for value in (expected, actual))
    return set(left) == set(right) if as_set else sorted(left) == sorted(right)


def _close(expected: Any, actual: Any, tolerance: float) -> bool:
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(actual, (list, tuple))
            and len(expected) == len(actual)
            and all(_close(left, right, tolerance) for left, right in zip(expected, actual, strict=True))
        )
    if isinstance(expected, dict):
        return (
            isinstance(actual, dict)
            and expected.keys() == actual.keys()
            and all(_close(value, actual[key], tolerance) for key, value in expected.items())
        )
    if isinstance(expected, float) or isinstance(actual, float):
        if not (_is_number(expected) and _is_number(actual)):
            return False
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return math.isclose(expected, actual, rel_tol=tolerance, abs_tol=tolerance)
    return bool(expected == actual)


def _same_output(expected: str, actual: str) -> bool:
    """The rule of LiveCodeBench for programs."""
    left, right = (text.strip().split("\n") for text in (expected, actual))
    return len(left) == len(right) and all(
        _same_line(a.strip(), b.strip()) for a, b in zip(left, right, strict=True)
    )


def _same_line(expected: str, actual: str) -> bool:
    if expected == actual:
        return True
    left, right = expected.split(), actual.split()
    try:
        return len(left) == len(right) and all(
            Decimal(a) == Decimal(b) for a, b in zip(left, right, strict=True)
        )
    except InvalidOperation:
        return False


def _exact(expected: Any, actual: Any, tolerance: float | None) -> bool:
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, float):
        if math.isnan(expected) or math.isnan(actual):
            return math.isnan(expected) and math.isnan(actual)
        return expected == actual or (
            tolerance is not None and math.isclose(expected, actual, rel_tol=tolerance, abs_tol=tolerance)
        )
    if isinstance(expected, (list, tuple)):
        return len(expected) == len(actual) and all(
            _exact(left, right, tolerance) for left, right in zip(expected, actual, strict=True)
        )
    if isinstance(expected, dict):
        left, right = _by_key(expected), _by_key(actual)
        return left.keys() == right.keys() and all(
            _exact(value, right[key], tolerance) for key, value in left.items()
        )
    if isinstance(expected, (set, frozenset, complex)):
        return json.dumps(encode(expected)) == json.dumps(encode(actual))
    return bool(expected == actual)


def _by_key(table: dict[Any, Any]) -> dict[str, Any]:
    """Key by encoded form: as dictionary keys `True`, `1` and `1.0` would be the same."""
    return {json.dumps(encode(key)): value for key, value in table.items()}

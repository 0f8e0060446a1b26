from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings

from envs.code.comparison import Rule, agree
from tests.envs.code.test_driver import VALUES

EXACT = Rule("exact")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, True),
        (True, 1),
        (1, 1.0),
        ([1], (1,)),
        ((1,), [1]),
        ("1", 1),
        (None, 0),
        (b"a", "a"),
        ({1: "a"}, {True: "a"}),
        ({1: "a"}, {1: "a", 2: "b"}),
        ({"a": 1}, {"a": True}),
        ({1}, {True}),
        ({1}, frozenset({1})),
        ([1, 2], [1]),
        ([1, 2], [2, 1]),
        (0.1 + 0.2, 0.3),
        (math.nan, 0.0),
    ],
)
def test_exact_tells_apart(expected: Any, actual: Any) -> None:
    assert not agree(expected, actual, EXACT)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
        ({3, 1, 2}, {1, 2, 3}),
        (math.nan, math.nan),
        ([math.inf, None], [math.inf, None]),
        (0.0, -0.0),
        (1j, 1j),
    ],
)
def test_exact_agrees(expected: Any, actual: Any) -> None:
    assert agree(expected, actual, EXACT)


def test_exact_tolerance_is_relative() -> None:
    rule = Rule("exact", 1e-6)
    assert agree([1e6], [1e6 + 0.5], rule)
    assert not agree([1e6], [1e6 + 2.0], rule)
    assert not agree([1], [1.0], rule)
    assert not agree(math.nan, 1.0, rule)


def test_equal_is_pythons_equality() -> None:
    rule = Rule("equal")
    assert agree(True, 1, rule)
    assert agree(14, 14.0, rule)
    assert not agree([1], (1,), rule)
    assert not agree(math.nan, math.nan, rule)


def test_equal_tolerance_is_absolute_and_wants_numbers() -> None:
    rule = Rule("equal", 1e-6)
    assert agree(0.5, 0.5 + 9e-7, rule)
    assert not agree(0.5, 0.5 + 2e-6, rule)
    assert not agree(0.5, "0.5", rule)
    assert not agree(0.5, math.nan, rule)


def test_truth_and_sequence() -> None:
    assert agree(True, [0], Rule("truth"))
    assert not agree(True, [], Rule("truth"))
    assert agree([1, 2], (1, 2), Rule("sequence"))
    assert not agree([1, 2], {1: 0, 2: 0}, Rule("sequence"))
    assert not agree(["a"], "a", Rule("sequence"))


def test_text_drops_trailing_whitespace_only() -> None:
    rule = Rule("text")
    assert agree("1 2\n3\n", "1 2  \n3\n\n\n", rule)
    assert agree("\n", "", rule)
    assert not agree("1 2\n", " 1 2\n", rule)
    assert not agree("1\n2\n", "1\n\n2\n", rule)
    assert not agree("1\n", 1, rule)


@settings(max_examples=40)
@given(VALUES)
def test_exact_is_reflexive(value: Any) -> None:
    assert agree(value, value, EXACT)


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "same"),
    [
        (Rule("members"), (1, 2), [2, 1, 1], True),
        (Rule("members"), (1, 2), [2], False),
        (Rule("members"), (1,), 1, False),
        (Rule("members"), [[1], [2]], [[2], [1]], True),
        (Rule("sorted"), [2, 1], (1, 2), True),
        (Rule("sorted"), [2, 1], [1, 2, 2], False),
        (Rule("json"), [[1, 2]], ((1, 2),), True),
        (Rule("json"), [0.3], [0.1 + 0.2], True),
        (Rule("json"), [1], [2], False),
        (Rule("json"), {"a": [1]}, {"a": (1,)}, True),
        (Rule("json"), "1", 1, False),
        (Rule("close", 1e-3), [100.0], [100.05], True),
        (Rule("close", 1e-3), [100.0], [100.2], False),
        (Rule("close", 1e-3), 1.0, "1.0", False),
        (Rule("stdio"), "1 2\n3\n", " 1 2 \n3", True),
        (Rule("stdio"), "1.50\n", "1.5", True),
        (Rule("stdio"), "1\n2\n", "1\n\n2", False),
        (Rule("stdio"), "YES\n", "yes", False),
        (Rule("stdio"), "1 2\n", "1  2", True),
        (Rule("stdio"), "", "x", False),
    ],
)
def test_the_rules_of_the_fields_files(rule: Rule, expected: object, actual: object, same: bool) -> None:
    assert agree(expected, actual, rule) is same

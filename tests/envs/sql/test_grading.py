from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.sql.answers import Answer
from envs.sql.comparison import equal_results, equal_values
from envs.sql.grading import GoldError, grade, is_correct
from envs.sql.queries import Row, Rule, Value
from tests.envs.sql.shops import shops

VALUES = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["a", "b", "1"]), st.binary(max_size=1)
)
RESULTS = st.lists(st.tuples(VALUES, VALUES), max_size=6)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (1, 1 + 1e-8, False),
        (10**12, 10**12 + 1, False),
        (1e12, 1e12 + 1, True),
        (0.0, 1e-10, True),
        ("1", 1, False),
        ("a", "A", False),
        ("a", b"a", False),
        (None, None, True),
        (None, 0, False),
        (None, "", False),
        (float("inf"), float("inf"), True),
        (2**62, 2**62 + 1, False),
    ],
)
def test_values(left: Value, right: Value, equal: bool) -> None:
    assert equal_values(left, right) is equal
    assert equal_values(right, left) is equal


@pytest.mark.parametrize(
    ("left", "right", "bag", "ordered"),
    [
        ([(1,), (2,)], [(2,), (1,)], True, False),
        ([(1,), (1,)], [(1,)], False, False),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)], False, False),
        ([(1, "a")], [("a", 1)], False, False),
        ([(1, "a")], [(1,)], False, False),
        ([(0.3, "x"), (None, "y")], [(None, "y"), (0.1 + 0.2, "x")], True, False),
        ([], [], True, True),
        ([], [(None,)], False, False),
    ],
)
def test_results(left: list[Row], right: list[Row], bag: bool, ordered: bool) -> None:
    assert equal_results(left, right, "bag") is bag
    assert equal_results(left, right, "ordered") is ordered


@given(RESULTS, st.randoms())
def test_a_bag_has_no_order(rows: list[Row], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert equal_results(rows, shuffled, "bag")
    assert equal_results(rows, rows, "ordered")


@given(RESULTS, RESULTS)
def test_equality_is_symmetric_and_order_is_stricter(left: list[Row], right: list[Row]) -> None:
    assert equal_results(left, right, "bag") == equal_results(right, left, "bag")
    if equal_results(left, right, "ordered"):
        assert equal_results(left, right, "bag")


WORLDS = [shops(), shops([[1, "kavo", 9]]), shops([[1, "mul", 2], [2, "kavo", 3]])]
GOLD = "SELECT MAX(cost) FROM shops WHERE place = 'kavo'"  # 5, 9, 3


@pytest.mark.parametrize(
    ("sql", "correct"),
    [
        (GOLD, True),
        ("select cost * 1.0 as answer from shops where place = 'kavo' order by cost desc limit 1", True),
        ("SELECT MAX(cost) FROM shops", False),
        ("SELECT 5", False),
        ("VALUES (5)", False),
        ("SELECT CAST(MAX(cost) AS TEXT) FROM shops WHERE place = 'kavo'", False),
        ("SELECT 5 UNION SELECT 9 UNION SELECT 3", False),
        ("SELECT cost FROM shops WHERE place = 'kavo'", False),
        ("SELECT MAX(cost), 1 FROM shops WHERE place = 'kavo'", False),
        ("DELETE FROM shops", False),
        ("", False),
    ],
)
def test_a_submission_must_be_right_on_every_sibling(sql: str, correct: bool) -> None:
    assert is_correct(sql, Answer(sql=GOLD), WORLDS)[1] is correct


@pytest.mark.parametrize(("rule", "scalar"), [("bag", 1.0), ("ordered", 0.0)])
def test_the_declared_rule_decides(rule: Rule, scalar: float) -> None:
    gold = "SELECT id FROM shops ORDER BY id"
    assert (
        grade("SELECT id FROM shops ORDER BY id DESC", Answer(sql=gold, rule=rule), WORLDS).scalar == scalar
    )


def test_components_tell_wrong_from_broken() -> None:
    for sql, runs in ((None, 0.0), ("SELECT nope", 0.0), ("SELECT 1", 1.0)):
        reward = grade(sql, Answer(sql=GOLD), WORLDS)
        assert {c.name: c.value for c in reward.components} == {"correct": 0.0, "runs": runs}
        assert reward.scalar == 0.0


def test_a_gold_query_that_fails_is_the_tasks_fault_and_is_not_shown() -> None:
    with pytest.raises(GoldError, match="no such column") as caught:
        grade("SELECT 1", Answer(sql="SELECT nope AS secret FROM shops"), WORLDS)
    assert "secret" not in str(caught.value)

"""Numbers worked by hand from the definitions of SQuAD, HotpotQA and Search-R1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.search.grading import (
    Conduct,
    FormatRewards,
    contains,
    exact_match,
    f1,
    grade,
    normalise,
    paid,
    sub_exact_match,
    usable,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  Cat.", "cat"),
        ("a b-c", "bc"),  # punctuation leaves no gap, and articles go afterwards
        ("an apple, a day", "apple day"),
        ("theatre", "theatre"),
        ("U.S.A.", "usa"),
        ("  ", ""),
        ("The A An", ""),
        ("Ünïted’s", "ünïted’s"),  # a typographic apostrophe is no ASCII punctuation
    ],
)
def test_normalisation(text: str, wanted: str) -> None:
    assert normalise(text) == wanted


def test_exact_match_is_equality_with_any_gold() -> None:
    assert exact_match("the Tessa Vark!", ["Odo", "tessa vark"]) == 1
    assert exact_match("Tessa", ["Tessa Vark"]) == 0
    assert exact_match("", ["x"]) == 0


def test_substrings_count_in_the_measure_and_are_not_paid() -> None:
    assert sub_exact_match("cathedral", ["cat"]) == 1  # as Search-R1 has it
    assert paid("cathedral", ["cat"], "sub_em") == 0
    assert paid("it is the cat", ["cat"], "sub_em") == 1
    assert paid("one two three four five cat", ["cat"], "sub_em") == 0  # five words more than gold
    assert paid(", ".join(f"name{i}" for i in range(49)) + ", cat", ["cat"], "sub_em") == 0


def test_f1_by_hand() -> None:
    # 2 of 3 words of the answer are in the 4 of gold: p = 2/3, r = 1/2, f1 = 4/7
    assert f1("big red dog", ["big red cat house"]) == pytest.approx(4 / 7)
    assert f1("x x", ["x"]) == pytest.approx(2 / 3)  # a bag: the second x is not matched
    assert f1("yes it is", ["yes"]) == 0.0
    assert f1("yes", ["yes"]) == 1.0
    assert f1("dog", ["cat", "dog"]) == 1.0
    assert f1("", ["cat"]) == 0.0


def test_golds_that_normalise_to_nothing_are_not_usable() -> None:
    assert usable(["the", "...", "Ilmen"]) == ("Ilmen",)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_metrics_are_ordered(answer: str, gold: str) -> None:
    exact = exact_match(answer, [gold])
    assert 0 <= f1(answer, [gold]) <= 1
    if exact and normalise(gold):
        assert f1(answer, [gold]) == sub_exact_match(answer, [gold]) == 1
        assert paid(answer, [gold], "sub_em") == 1
    if contains(answer, [gold]):
        assert sub_exact_match(answer, [gold]) == 1


# answered right, every call well-formed, a gold was shown -> the total of the table, at 0.2, 0.1 and 0.1
TABLE = [
    (True, True, True, 1.0),
    (True, True, False, 1.0),
    (True, False, True, 0.8),
    (False, True, True, 0.3),
    (False, True, False, 0.2),
    (False, False, True, 0.1),
]


@pytest.mark.parametrize(("right", "well", "retrieved", "total"), TABLE)
def test_format_rewards_follow_the_table(right: bool, well: bool, retrieved: bool, total: float) -> None:
    form = FormatRewards(structure=0.2, retrieval=0.1, final_format=0.1)
    conduct = Conduct(answer="cat" if right else "dog", well_formed=well, retrieved=retrieved, support=0.5)
    judged = grade(conduct, ["cat"], "em", form)
    assert judged.scalar == pytest.approx(total)


def test_no_answer_is_paid_nothing_for_its_form() -> None:
    form = FormatRewards(structure=0.2, retrieval=0.1, final_format=0.1)
    for answer in (None, " The . "):
        conduct = Conduct(answer=answer, well_formed=True, retrieved=True, support=1.0)
        assert grade(conduct, ["cat"], "f1", form).scalar == 0.0

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_rl.evaluation import Outcome, clustered_interval, pass_at_k, summarise, wilson


def test_wilson_by_hand():
    # 8 of 10: centre (0.8 + 0.19207) / 1.38415, half 1.96 sqrt(0.016 + 0.0096036) / 1.38415
    low, high = wilson(8, 10)
    assert low == pytest.approx(0.4902, abs=1e-4)
    assert high == pytest.approx(0.9433, abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 8), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_success(n, data):
    wins = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([True] * wins + [False] * (n - wins), k))
    assert pass_at_k(n, wins, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_needs_k_samples():
    with pytest.raises(ValueError, match="k = 3, samples = 2"):
        pass_at_k(2, 1, 3)


def test_the_clustered_interval_contains_the_mean_and_is_repeatable():
    rates = [1.0, 0.5, 0.0, 1.0, 0.5, 1.0]
    low, high = clustered_interval(rates)
    assert low < sum(rates) / len(rates) < high
    assert clustered_interval(rates) == (low, high)


def outcome(task: str, success: bool, fault: str | None = None) -> Outcome:
    return Outcome(
        task_id=task,
        reward=float(success),
        success=success,
        turns=2,
        tool_calls=2,
        tool_errors=1,
        fault=fault,
    )


def test_a_fault_is_counted_apart_and_judged_by_nobody():
    report = summarise("x", [outcome("a", True), outcome("b", False), outcome("c", False, "engine")])
    assert report.success == 0.5
    assert report.tasks == 2
    assert report.faults == {"engine": 1}
    assert report.tool_error_rate == 0.5


def test_several_samples_a_task_give_pass_at_k():
    report = summarise(
        "x", [outcome("a", True), outcome("a", False), outcome("b", False), outcome("b", False)]
    )
    assert report.samples == 2
    assert report.success == 0.25
    assert report.pass_at == {1: 0.25, 2: 0.5}

from __future__ import annotations

import math

import pytest

from agent_rl.losses import LossConfig, make
from tests.agent_rl.losses.inputs import column, inputs

NAN = float("nan")
LOG_RATIOS = [0.002, -0.0005, 0.0006]  # reference D5: mean 0.0007


@pytest.mark.parametrize(
    ("advantage", "expected", "gradient"), [(1, -1.0004, 0.0), (-1, 1.0007, math.exp(0.0007) / 3)]
)
def test_worked_example(advantage: float, expected: float, gradient: float) -> None:
    current = column(LOG_RATIOS).requires_grad_()
    loss, metrics = make(LossConfig(name="sequence")).loss(current, inputs([advantage] * 3))
    loss.backward()
    assert loss.item() == pytest.approx(expected, abs=5e-7)
    assert current.grad is not None
    assert current.grad.tolist() == pytest.approx([gradient] * 3)
    assert metrics["ratio"] / 3 == pytest.approx(1.0007, abs=5e-7)


def test_a_masked_token_is_in_no_ratio() -> None:
    current = column([*LOG_RATIOS, 5.0])
    loss, metrics = make(LossConfig(name="sequence")).loss(current, inputs([-1] * 4, sampled=[0, 0, 0, NAN]))
    assert loss.item() == pytest.approx(1.0007 * 3 / 4, abs=5e-7)
    assert metrics["masked_fraction"] == 1


def test_each_sequence_has_its_own_ratio() -> None:
    current = column([0.1, 0.3, -0.2])
    _, metrics = make(LossConfig(name="sequence")).loss(current, inputs([1, 1, 1], sequences=[0, 0, 1]))
    assert metrics["ratio"] == pytest.approx(2 * math.exp(0.2) + math.exp(-0.2))


def test_defaults_are_those_of_gspo_and_can_be_set() -> None:
    config = LossConfig(name="sequence")
    assert (config.clip_low, config.clip_high, config.dual_clip) == (3e-4, 4e-4, 0.0)
    assert config.aggregation == "seq-mean-token-mean"
    assert LossConfig(name="sequence", clip_low=0.1).clip_low == 0.1

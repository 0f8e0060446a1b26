from __future__ import annotations

import pytest

from agent_rl.losses import LossConfig, make
from tests.agent_rl.losses.inputs import column, inputs


def test_negative_log_likelihood_of_demonstrations() -> None:
    current = column([-1.0, -3.0]).requires_grad_()
    nan = float("nan")
    loss, metrics = make(LossConfig(name="supervised")).loss(current, inputs([1, 1], sampled=[nan, nan]))
    loss.backward()
    assert loss.item() == 2
    assert metrics == {"nll": 4.0}
    assert current.grad is not None
    assert current.grad.tolist() == pytest.approx([-0.5, -0.5])

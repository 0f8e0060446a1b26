from __future__ import annotations

import pytest
import torch

from agent_rl.losses.kl import kl
from tests.agent_rl.losses.inputs import column

P, Q = column([0.6, 0.4]), column([0.5, 0.5])  # reference D17


def test_worked_example() -> None:
    values = [kl(P.log(), Q.log(), how) for how in ("k1", "k2", "k3")]
    assert values[0].tolist() == pytest.approx([0.182322, -0.223144], abs=1e-6)
    assert values[1].tolist() == pytest.approx([0.016621, 0.024897], abs=1e-6)
    assert values[2].tolist() == pytest.approx([0.015655, 0.026856], abs=1e-6)
    expectations = [float((P * v).sum()) for v in values]
    assert expectations == pytest.approx([0.020136, 0.019931, 0.020136], abs=1e-6)


def gradient(how) -> torch.Tensor:
    """Expected gradient over the policy's own samples with respect to its logits."""
    logits = P.log().clone().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    (P * kl(logp, Q.log(), how)).sum().backward()
    assert logits.grad is not None
    return logits.grad


def test_as_a_loss_k2_has_the_true_gradient_k1_none_and_k3_the_reverse_one() -> None:
    logits = P.log().clone().requires_grad_()
    logp = torch.log_softmax(logits, 0)
    (logp.exp() * (logp - Q.log())).sum().backward()
    assert logits.grad is not None
    assert gradient("k2").tolist() == pytest.approx(logits.grad.tolist())
    assert gradient("k1").tolist() == pytest.approx([0, 0], abs=1e-12)
    assert gradient("k3").tolist() == pytest.approx((P - Q).tolist())  # d KL(q || p) / d logits


def test_extreme_gaps_are_clamped() -> None:
    assert kl(column([1000, -1000]), column([0, 0]), "k1").tolist() == [10, -10]
    assert kl(column([-1000]), column([0]), "k3").tolist() == [10]

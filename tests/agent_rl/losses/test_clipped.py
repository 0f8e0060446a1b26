from __future__ import annotations

import math

import pytest
import torch

from agent_rl.losses import LossConfig, make
from agent_rl.losses.surrogate import clipped_surrogate
from tests.agent_rl.losses.inputs import column, inputs

NAN = float("nan")


def test_worked_example() -> None:
    # Reference D3: clip 0.2/0.28, dual clip 3.
    losses, active = clipped_surrogate(
        column([1.5, 0.5, 1.5, 0.5, 5]), column([1, 1, -1, -1, -1]), LossConfig()
    )
    assert losses.tolist() == pytest.approx([-1.28, -0.5, 1.5, 0.8, 3])
    assert active.tolist() == [True, False, False, True, True]


def test_defaults_are_those_of_dapo() -> None:
    config = LossConfig()
    assert (config.clip_low, config.clip_high, config.dual_clip) == (0.2, 0.28, 3.0)
    assert (config.aggregation, config.kl) == ("token-mean", "none")
    assert make(config).needs == frozenset()


def test_loss_and_gradient_by_hand() -> None:
    # Ratios 1.5 (clipped, no gradient), 1.5 with A < 0 (gradient r), 1 (gradient -A).
    current = column([math.log(1.5), math.log(1.5), 0]).requires_grad_()
    loss, metrics = make(LossConfig()).loss(current, inputs([1, -1, 2]))
    loss.backward()
    assert loss.item() == pytest.approx((-1.28 + 1.5 - 2) / 3)
    assert current.grad is not None
    assert current.grad.tolist() == pytest.approx([0, 1.5 / 3, -2 / 3])
    assert metrics["clip_fraction"] == 1
    assert metrics["ratio"] == pytest.approx(4.0)
    assert metrics["approx_kl"] == pytest.approx(2 * (0.5 - math.log(1.5)))


def test_rows_of_one_token_are_clipped_each_by_itself() -> None:
    # Advantages +1 and -1 cancel on average, but only the first is clipped.
    current = column([math.log(2), math.log(2)]).requires_grad_()
    loss, _ = make(LossConfig()).loss(current, inputs([1, -1]))
    assert loss.item() == pytest.approx((-1.28 + 2) / 2)


def test_a_wild_ratio_stays_finite() -> None:
    current = column([0.0, -1000.0]).requires_grad_()
    loss, _ = make(LossConfig()).loss(current, inputs([-1, 1], sampled=[-1000, 0]))
    loss.backward()
    assert torch.isfinite(loss)
    assert current.grad is not None
    assert torch.isfinite(current.grad).all()


def test_tokens_without_logprobs_are_masked_and_counted() -> None:
    current = column([0.0, -1.0, -2.0]).requires_grad_()
    loss, metrics = make(LossConfig(kl="k2", kl_coefficient=0.1)).loss(
        current, inputs([1, 1, 1], sampled=[0, NAN, -math.inf], reference=[0, NAN, 0])
    )
    loss.backward()
    assert loss.item() == pytest.approx(-1 / 3)
    assert current.grad is not None
    assert current.grad.tolist() == pytest.approx([-1 / 3, 0, 0])
    assert metrics["masked_fraction"] == 2


def test_the_ratio_is_taken_to_the_proximal_and_the_correction_to_the_sampled() -> None:
    config = LossConfig(correction="tis")
    assert make(config).needs == {"proximal_logprobs"}
    data = inputs([1], sampled=[math.log(0.25)], proximal=[math.log(0.5)])
    loss, metrics = make(config).loss(column([math.log(0.55)]), data)
    assert loss.item() == pytest.approx(-1.1 * 2)
    assert metrics["correction_weight"] == pytest.approx(2)


def test_kl_is_added_and_needs_a_reference() -> None:
    config = LossConfig(kl="k2", kl_coefficient=0.5)
    assert make(config).needs == {"reference_logprobs"}
    loss, metrics = make(config).loss(column([0.0]), inputs([1], reference=[-2]))
    assert loss.item() == pytest.approx(-1 + 0.5 * 2)
    assert metrics["kl"] == pytest.approx(2)
    with pytest.raises(ValueError, match="score the forest"):
        make(config).loss(column([0.0]), inputs([1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kl": "k3"}, "go together"),
        ({"kl_coefficient": 0.1}, "go together"),
        ({"dual_clip": 0.5}, "above 1"),
        ({"correction_low": 3.0}, "below correction_high"),
        ({"cliplow": 0.1}, "cliplow"),
    ],
)
def test_contradictions_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LossConfig(**options)


def test_unknown_name_lists_the_choices_and_a_dotted_path_works() -> None:
    with pytest.raises(ValueError, match=r"'cliped' is not known. Did you mean 'clipped'"):
        make(LossConfig(name="cliped"))
    assert make(LossConfig(name="agent_rl.losses.clipped:Clipped")).needs == frozenset()

from __future__ import annotations

import numpy as np
import pytest

from agent_rl.losses import LossConfig
from agent_rl.losses.rollout_correction import correction_weights, usable
from tests.agent_rl.losses.inputs import inputs

RHO = [0.3, 0.8, 1.2, 4.0]  # reference D15: p_train / p_rollout


def weights(sampled: list[float] | None = None, sequences: list[int] | None = None, **options) -> list[float]:
    data = inputs([1] * 4, sampled=sampled or [0] * 4, proximal=list(np.log(RHO)), sequences=sequences)
    return correction_weights(data, LossConfig(**options), usable(data)).tolist()


def test_worked_examples() -> None:
    assert weights(correction="none") == [1, 1, 1, 1]
    assert weights(correction="tis") == pytest.approx([0.3, 0.8, 1.2, 2])
    assert weights(correction="mis") == pytest.approx([0, 0.8, 1.2, 0])
    assert weights(correction="mis", correction_high=5.0) == pytest.approx([0, 0.8, 1.2, 4])


def test_the_sequence_level_takes_the_product() -> None:
    level = {"correction": "tis", "correction_level": "sequence"}
    assert weights(**level) == pytest.approx([1.152] * 4)
    assert weights(**level, sequences=[0, 0, 0, 1]) == pytest.approx([0.288] * 3 + [2])
    level["correction"] = "mis"
    assert weights(**level, sequences=[0, 0, 1, 1]) == pytest.approx([0] * 4)
    assert weights(**level) == pytest.approx([1.152] * 4)


def test_tokens_without_logprobs_weigh_nothing() -> None:
    sampled = [float("nan"), 0, 0, -float("inf")]
    assert weights(sampled, correction="none") == [0, 1, 1, 0]
    assert weights(sampled, correction="tis") == pytest.approx([0, 0.8, 1.2, 0])
    product = weights(sampled, correction="tis", correction_level="sequence")
    assert product == pytest.approx([0, 0.96, 0.96, 0])


def test_an_extreme_gap_is_clamped() -> None:
    sampled = [-1000.0, 0, 0, 0]
    assert weights(sampled, correction="tis", correction_high=1e9)[0] == pytest.approx(np.exp(20))

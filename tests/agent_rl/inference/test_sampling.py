from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent_rl.inference.sampling import sample, uniforms


def test_inverse_of_the_cumulative_distribution() -> None:
    # Probabilities 1/2, 1/4, 1/4: the intervals are [0, 1/2), [1/2, 3/4), [3/4, 1).
    logits = torch.tensor([[2.0, 1.0, 1.0]]).mul(math.log(2.0)).expand(5, 3)
    sampled = sample(logits, [1.0] * 5, [0.0, 0.49, 0.51, 0.74, 0.99])
    assert sampled.token_ids == [0, 0, 1, 1, 2]
    assert sampled.logprobs == pytest.approx([math.log(p) for p in (0.5, 0.5, 0.25, 0.25, 0.25)])


def test_temperature_divides_the_logits() -> None:
    # At temperature 1/2 odds of 2:1 become 4:1.
    sampled = sample(torch.tensor([[math.log(2.0), 0.0]]), [0.5], [0.81], entropies=True)
    assert sampled.token_ids == [1]
    assert sampled.logprobs == pytest.approx([math.log(0.2)])
    assert sampled.entropies == pytest.approx([-0.8 * math.log(0.8) - 0.2 * math.log(0.2)])


def test_greedy_reports_temperature_one_beside_sampled_rows() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [0.0, math.log(3.0)]])
    sampled = sample(logits, [0.0, 1.0], [0.1, 0.1])
    assert sampled.token_ids == [1, 0]
    assert sampled.logprobs == pytest.approx([math.log(0.75), math.log(0.25)])


def test_impossible_tokens_are_never_sampled() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf]] * 2)
    sampled = sample(logits, [1.0, 1.0], [0.0, math.nextafter(1.0, 0.0)], entropies=True)
    assert sampled.token_ids == [1, 1]
    assert sampled.entropies == [0.0, 0.0]


def test_nan_is_an_error() -> None:
    with pytest.raises(FloatingPointError, match="not a distribution"):
        sample(torch.tensor([[math.nan, 0.0]]), [1.0], [0.5])


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8), st.floats(0, 1, exclude_max=True))
def test_the_draw_lies_in_the_tokens_interval(logits: list[float], draw: float) -> None:
    sampled = sample(torch.tensor([logits]), [1.0], [draw])
    p = torch.tensor(logits, dtype=torch.float64).softmax(0).numpy()
    edges = np.concatenate([[0.0], p.cumsum()])
    token = sampled.token_ids[0]
    assert edges[token] - 1e-5 <= draw <= edges[token + 1] + 1e-5
    assert sampled.logprobs[0] == pytest.approx(math.log(p[token]), abs=1e-4)


def test_uniforms_are_a_function_of_the_seed() -> None:
    assert uniforms((1, "a"), 4).tolist() == uniforms((1, "a"), 8)[:4].tolist()
    assert uniforms((1, "a"), 4).tolist() != uniforms(("1", "a"), 4).tolist()
    assert uniforms((), 3).min() >= 0
    # Pinned: equal in every process and on every machine.
    assert uniforms((1, "a"), 2).tolist() == [0.7090909122732442, 0.5056624584715145]

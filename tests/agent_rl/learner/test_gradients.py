"""The second promise: the gradient of the trie equals that of the unmerged rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_rl.batching import build, unmerged
from agent_rl.learner import Learner, LearnerConfig
from agent_rl.losses import LossConfig, make
from agent_rl.types import Annotations, Batch, Forest
from tests.agent_rl.forests import random_credits, random_forest
from tests.agent_rl.learner.models import exact_llama, tiny_llama

BIG = 10_000
LOSSES = {
    "clipped": LossConfig(correction="tis", kl="k3", kl_coefficient=0.1),
    "sequence": LossConfig(name="sequence", clip_low=0.2, clip_high=0.2),
    "masked": LossConfig(
        correction="mis", correction_level="sequence", correction_high=5.0, aggregation="seq-mean-token-sum"
    ),
    "supervised": LossConfig(name="supervised"),
}
LEARNERS = {
    "float64": Learner(exact_llama(), LearnerConfig(dtype="float64"), make(LossConfig())),
    "float32": Learner(tiny_llama(), LearnerConfig(), make(LossConfig())),
}


def annotations(forest: Forest, seed: int) -> Annotations:
    """Proximal and reference log-probabilities near the sampled ones."""
    rng = np.random.default_rng(seed)
    sampled = {n.id: n.sampled_logprobs for n in forest.nodes.values() if n.sampled_logprobs is not None}
    noisy = [
        {n: (s + rng.normal(0, 0.3, len(s))).astype(np.float32) for n, s in sampled.items()} for _ in range(2)
    ]
    return Annotations({"proximal_logprobs": noisy[0], "reference_logprobs": noisy[1]})


def gradient(subject: Learner, batch: Batch, loss: str) -> tuple[float, torch.Tensor]:
    subject.loss = make(LOSSES[loss])
    subject.model.zero_grad(set_to_none=True)
    metrics = subject.accumulate(batch)
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in subject.model.parameters()]
    return metrics["loss"], torch.cat([g.flatten() for g in grads])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
@pytest.mark.parametrize("loss", LOSSES)
@given(st.integers(0, 10**6), st.integers(6, 50))
@settings(max_examples=12, deadline=None)
def test_merged_cut_and_unmerged_gradients_agree(
    dtype: str, tolerance: float, loss: str, seed: int, budget: int
) -> None:
    forest = random_forest(seed)
    credits, notes = random_credits(forest, seed + 1), annotations(forest, seed)
    subject = LEARNERS[dtype]
    expected_loss, expected = gradient(subject, unmerged(forest, credits, notes, token_budget=BIG), loss)
    scale = max(1.0, float(expected.abs().max()))
    for batch in (
        build(forest, credits, notes, token_budget=BIG),
        build(forest, credits, notes, token_budget=budget),
        unmerged(forest, credits, notes, token_budget=budget),
    ):
        found_loss, found = gradient(subject, batch, loss)
        assert float((found - expected).abs().max()) < tolerance * scale
        assert found_loss == pytest.approx(expected_loss, abs=tolerance * max(1, abs(expected_loss)))


def test_the_losses_are_not_all_clipped_away() -> None:
    forest = random_forest(5)
    credits, notes = random_credits(forest, 5), annotations(forest, 5)
    for loss in LOSSES:
        _, found = gradient(LEARNERS["float64"], build(forest, credits, notes, token_budget=BIG), loss)
        assert float(found.abs().max()) > 1e-3


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_scores_equal_a_plain_run_over_the_path_of_each_node(seed: int) -> None:
    forest = random_forest(seed)
    subject = LEARNERS["float64"]
    found = subject.score(forest, ["proximal_logprobs"]).arrays["proximal_logprobs"]
    sampled = {n.id for n in forest.nodes.values() if n.sampled}
    assert set(found) == sampled  # discarded actions and those that every chain left early included
    for name in sampled:
        node = forest.nodes[name]
        tokens = torch.from_numpy(forest.tokens(name).astype(np.int64))
        with torch.no_grad():
            logits = subject.model(input_ids=tokens[None]).logits[0] / node.temperature
        logprobs = logits.log_softmax(-1)[:-1].gather(1, tokens[1:, None])[-len(node) :, 0]
        assert found[name] == pytest.approx(logprobs.numpy(), abs=1e-5)

from __future__ import annotations

import numpy as np
import pytest
import torch

from agent_rl.batching import build, unmerged
from agent_rl.learner.forward import arrange
from agent_rl.learner.score import score_pack
from agent_rl.types import Annotations, Pack
from tests.agent_rl.forests import ForestBuilder, random_credits, random_forest
from tests.agent_rl.learner.models import tiny_llama


def random_pack() -> Pack:
    forest = random_forest(11)
    (pack,) = build(forest, random_credits(forest, 2), Annotations(), token_budget=10_000).packs
    return pack


def test_chunks_change_nothing() -> None:
    model = tiny_llama().double()
    results = []
    for elements in (1 << 26, 17 * 3):  # all at once; three rows of logits at a time, recomputed
        model.zero_grad(set_to_none=True)
        scored = score_pack(model, random_pack(), entropy=True, chunk_elements=elements)
        scored.logprobs.square().sum().backward()
        grads = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        results.append((scored.logprobs.detach(), scored.entropy, grads))
    (a, entropy_a, grad_a), (b, entropy_b, grad_b) = results
    assert torch.allclose(a, b, atol=1e-12)
    assert entropy_a == pytest.approx(entropy_b)
    assert torch.allclose(grad_a, grad_b, atol=1e-10)


def test_entropy_and_logprob_by_hand() -> None:
    b = ForestBuilder()
    action = b.action(b.prompt([1, 2]), [3], temperature=0.5)
    b.episode([b.turn(action)])
    forest = b.forest()
    credits = random_credits(forest, 1)
    while not len(credits):
        credits = random_credits(forest, int(np.random.default_rng(0).integers(100)))
    (pack,) = build(forest, credits, Annotations(), token_budget=10).packs
    model = tiny_llama()
    with torch.no_grad():
        logprobs = (model(input_ids=torch.tensor([[1, 2]])).logits[0, -1] / 0.5).log_softmax(-1)
        scored = score_pack(model, pack, entropy=True)
    assert scored.logprobs.tolist() == pytest.approx([float(logprobs[3])] * len(pack.labels), abs=1e-5)
    entropy = float(-(logprobs.exp() * logprobs).sum())
    assert scored.entropy == pytest.approx(entropy * len(pack.labels), abs=1e-4)


def test_tries_of_one_pack_are_stacked_in_rows() -> None:
    b = ForestBuilder()
    for first, length in [(1, 5), (2, 2), (3, 3)]:
        action = b.action(b.prompt([first]), [9] * (length - 1))
        b.episode([b.turn(action)])
    forest = b.forest()
    credits = random_credits(forest, 0)
    (pack,) = unmerged(forest, credits, Annotations(), token_budget=100).packs
    arrangement = arrange(pack)
    assert arrangement.token_ids.shape[1] == int(np.bincount(np.cumsum(pack.positions == 0)).max())
    flat = arrangement.token_ids.flatten()[arrangement.places]
    assert flat.tolist() == pack.token_ids.tolist()


def test_one_chain_needs_no_mask_and_a_branch_does() -> None:
    def pack(answers: list[list[int]]) -> Pack:
        b = ForestBuilder()
        root = b.prompt([1])
        rows = []
        for answer in answers:
            action = b.action(root, answer)
            b.episode([b.turn(action)])
            rows.append(action)
        forest = b.forest()
        from agent_rl.types import CreditRow, Credits

        credits = Credits.of(CreditRow(a, 0, 2, 1.0, 1.0, f"e{i}", a) for i, a in enumerate(rows))
        return build(forest, credits, Annotations(), token_budget=100).packs[0]

    assert arrange(pack([[2, 3]])).causal
    assert not arrange(pack([[2, 3], [2, 4]])).causal

from __future__ import annotations

import pytest
import torch

from agent_rl.batching import build
from agent_rl.learner.score import score_pack
from agent_rl.learner.support import prepare
from agent_rl.types import Annotations, CreditRow, Credits, Pack
from tests.agent_rl.forests import ForestBuilder, random_credits, random_forest
from tests.agent_rl.learner.models import tiny_llama


def random_pack() -> Pack:
    forest = random_forest(11)
    (pack,) = build(forest, random_credits(forest, 2), Annotations(), token_budget=10_000).packs
    return pack


def test_chunks_change_nothing() -> None:
    model = tiny_llama().double()
    prepare(model)
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
    credits = Credits.of(CreditRow(action, 0, 1, a, 1.0, "e0", action) for a in (1.0, 2.0))
    (pack,) = build(b.forest(), credits, Annotations(), token_budget=10).packs
    model = tiny_llama()
    prepare(model)
    with torch.no_grad():
        logprobs = (model(input_ids=torch.tensor([[1, 2]])).logits[0, -1] / 0.5).log_softmax(-1)
        scored = score_pack(model, pack, entropy=True)
    assert scored.logprobs.tolist() == pytest.approx([float(logprobs[3])] * 2, abs=1e-5)
    assert scored.entropy == pytest.approx(2 * float(-(logprobs.exp() * logprobs).sum()), abs=1e-4)


def test_a_model_without_tree_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="prepare"):
        score_pack(tiny_llama(), random_pack())

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from agent_rl.batching import build
from agent_rl.learner.tree_attention import blocks, tree_attention, tree_mask
from agent_rl.types import Annotations
from tests.agent_rl.forests import random_credits, random_forest

CPU = torch.device("cpu")


def test_mask_of_two_answers() -> None:
    # 1 2 7, then 8 and 9: see the example of `Pack`.
    mask = tree_mask(np.array([5, 5, 5, 4, 5]), 0, np.arange(5)).astype(int).tolist()
    assert mask == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]


def test_a_block_sees_the_ancestors_of_its_first_token_and_itself() -> None:
    found = blocks(np.array([6, 6, 6, 4, 6, 6]), CPU, size=2)
    assert [b.keys.tolist() for b in found] == [[0, 1], [0, 1, 2, 3], [0, 1, 2, 4, 5]]  # token 3 is a leaf
    assert found[2].mask.int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([1, 2, 4]))
@settings(max_examples=25, deadline=None)
def test_blocks_equal_one_dense_mask_forward_and_backward(seed: int, size: int, key_heads: int) -> None:
    forest = random_forest(seed)
    batch = build(forest, random_credits(forest, seed), Annotations(), token_budget=10_000)
    torch.manual_seed(seed)
    for pack in batch.packs:
        shapes = [(1, 4, pack.size, 8), (1, key_heads, pack.size, 8), (1, key_heads, pack.size, 6)]
        inputs = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
        mask = torch.from_numpy(tree_mask(pack.subtree_end, 0, np.arange(pack.size)))
        dense = scaled_dot_product_attention(*inputs, attn_mask=mask, scale=0.3, enable_gqa=True).transpose(
            1, 2
        )
        tree = blocks(pack.subtree_end, CPU, size)
        blocked, _ = tree_attention(torch.nn.Identity(), *inputs, None, tree=tree, scaling=0.3)
        assert torch.allclose(dense, blocked, atol=1e-12)
        weight = torch.randn_like(dense)
        expected = torch.autograd.grad(dense, inputs, weight)
        for a, b in zip(expected, torch.autograd.grad(blocked, inputs, weight), strict=True):
            assert torch.allclose(a, b, atol=1e-11)


def test_without_a_tree_it_is_sdpa() -> None:
    module = torch.nn.Identity()
    q, k, v = torch.randn(3, 1, 2, 5, 8)
    output, _ = tree_attention(module, q, k, v, None)
    assert torch.allclose(
        output, scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2), atol=1e-6
    )


@pytest.mark.parametrize("n", [1, 5])
def test_a_chain_is_causal(n: int) -> None:
    (block,) = blocks(np.full(n, n), CPU, size=8)
    assert torch.equal(block.mask, torch.ones(n, n).tril().bool())

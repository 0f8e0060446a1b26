"""Attention over a prefix trie, as an attention implementation of transformers.

Tokens stand in depth-first order, so a block of consecutive queries sees the ancestors of its first token and
parts of itself, and nothing else. Attention runs block by block over just those keys: its cost is tokens times
depth, as if every path were computed once, where a mask over the whole trie would cost tokens squared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from agent_rl.types.batch import Int64

NAME = "agent_rl_tree"
"""The implementation's name in transformers. Without a tree it is SDPA."""
BLOCK = {"cpu": 256}
"""Queries of one block by device type; 1024 elsewhere, where small blocks leave the device idle."""


@dataclass(frozen=True, slots=True)
class Block:
    """Queries `begin:end`, the keys they may see, and which see which."""

    begin: int
    end: int
    keys: Tensor  # [K] ancestors of the first query, then the queries themselves
    mask: Tensor  # [end - begin, K] bool


def tree_mask(subtree_end: Int64, begin: int, keys: Int64) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Who sees whom: token i sees j when `j <= i < subtree_end[j]`; rows are `begin + ...` to the last key."""
    rows = np.arange(begin, keys[-1] + 1)[:, None]
    seen: np.ndarray[Any, np.dtype[np.bool_]] = (keys <= rows) & (rows < subtree_end[keys])
    return seen


def blocks(subtree_end: Int64, device: torch.device, size: int | None = None) -> list[Block]:
    """Cut a pack, [N] as in `Pack`, into blocks of at most `size` queries."""
    n, size = len(subtree_end), size or BLOCK.get(device.type, 1024)
    found: list[Block] = []
    for begin in range(0, n, size):
        end = min(n, begin + size)
        # An earlier token seen by any of these queries is an ancestor of the first: its subtree is an interval.
        ancestors = np.flatnonzero(subtree_end[:begin] > begin)
        keys = np.concatenate([ancestors, np.arange(begin, end)])
        mask = torch.from_numpy(tree_mask(subtree_end, begin, keys))
        found.append(Block(begin, end, torch.from_numpy(keys).to(device), mask.to(device)))
    return found


def tree_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: list[Block] | None = None,
    scaling: float | None = None,
    **rest: Any,
) -> tuple[Tensor, Tensor | None]:
    """What transformers calls in every layer.

    Args:
        module: the attention layer.
        query: [1, H, N, D]; `key` and `value` may have fewer heads.
        key: [1, h, N, D].
        value: [1, h, N, E].
        attention_mask: ignored when there is a tree.
        tree: the blocks of the pack, passed to the model as `tree=`.
        scaling: of the logits.
        rest: passed on to SDPA when there is no tree.

    Returns:
        [1, N, H, E], and no weights.
    """
    if tree is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **rest)
    if torch.is_autocast_enabled(query.device.type):
        # The backward pass runs outside autocast: all three must have its type already.
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    output: Tensor = _TreeAttention.apply(query, key, value, tree, scaling)  # type: ignore[no-untyped-call]
    return output.transpose(1, 2).contiguous(), None


class _TreeAttention(torch.autograd.Function):
    """Block by block forward, and again in the backward pass: what is kept is query, key and value alone."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, tree: list[Block], scale: float | None
    ) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.tree, ctx.scale = tree, scale
        output = query.new_empty((*query.shape[:-1], value.shape[-1]))
        for block in tree:
            output[:, :, block.begin : block.end] = _attend(*_select(block, query, key, value), block, scale)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        tensors = ctx.saved_tensors
        query_grad, key_grad, value_grad = (torch.zeros_like(t) for t in tensors)
        for block in ctx.tree:
            parts = [t.detach().requires_grad_() for t in _select(block, *tensors)]
            with torch.enable_grad():
                output = _attend(parts[0], parts[1], parts[2], block, ctx.scale)
            queries = slice(block.begin, block.end)
            q, k, v = torch.autograd.grad(output, parts, gradient[:, :, queries])
            query_grad[:, :, queries] = q
            key_grad.index_add_(2, block.keys, k)
            value_grad.index_add_(2, block.keys, v)
        return query_grad, key_grad, value_grad, None, None


def _select(block: Block, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    keys = block.keys
    return query[:, :, block.begin : block.end], key.index_select(2, keys), value.index_select(2, keys)


def _attend(query: Tensor, key: Tensor, value: Tensor, block: Block, scale: float | None) -> Tensor:
    shared_heads = key.shape[1] != query.shape[1]
    return scaled_dot_product_attention(
        query, key, value, attn_mask=block.mask, scale=scale, enable_gqa=shared_heads
    )


# At import, so that a model which carries the name works in every process that has this module.
AttentionInterface.register(NAME, tree_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)

"""Attention over slots: how a step of many sequences is divided, and the function that reads each its own.

All tokens of a step, whichever request they belong to, go through the model as one row of N tokens without
padding. Only attention knows about sequences, so only attention is replaced: it writes the new keys and
values to their slots and reads each sequence from its own.

```
 step:   [ a  b  d  d' | c c c c c c | e e e ]      a, b, d decode; c, e: chunks of prefixes
 slots:    0  1  3       5             8
 spans:   [0,1] [3] ...                             neighbouring slots with one token: one batched call
 chunks:                 5             8            one causal call each
```

Neighbouring slots are read as views, so a step copies nothing but the new tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedConfig

from agent_rl.types import Int32

ATTENTION = "agent_rl_slots"


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbouring slots that compute one token each: rows `begin:end` of the step."""

    begin: int
    end: int
    slot: int
    length: int
    """Most tokens that any of them reads."""
    mask: torch.Tensor | None  # [end - begin, 1, 1, length], 0 or -inf; None when all read `length` tokens


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive tokens of one prefix: rows `begin:end` of the step."""

    begin: int
    end: int
    slot: int
    length: int
    """Tokens read by the last of them, itself included."""
    mask: torch.Tensor | None  # [1, 1, end - begin, length] bool; None when nothing precedes the chunk


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Where the N tokens of a step go."""

    slots: torch.Tensor  # [N] int64
    positions: torch.Tensor  # [N] int64
    spans: list[Span] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)


def plan_step(
    slots: Int32, positions: Int32, singles: int, lengths: list[int], device: torch.device, dtype: torch.dtype
) -> StepPlan:
    """Divide a step into spans and chunks.

    Args:
        slots: [N] slot of every token: first `singles` tokens with ascending slots, then the chunks.
        positions: [N] position of every token in its sequence.
        singles: sequences that compute one token.
        lengths: tokens of each chunk, in order.
        device: where the cache is.
        dtype: of the cache.
    """
    spans = []
    bounds = [0, *(np.flatnonzero(np.diff(slots[:singles]) != 1) + 1).tolist(), singles] if singles else []
    for begin, end in pairwise(bounds):
        reads = positions[begin:end] + 1
        length = int(reads.max())
        mask = None
        if int(reads.min()) < length:
            hidden = np.arange(length) >= reads[:, None]
            mask = torch.zeros(hidden.shape, dtype=dtype, device=device)
            mask = mask.masked_fill_(torch.from_numpy(hidden).to(device), float("-inf"))[:, None, None, :]
        spans.append(Span(begin, end, int(slots[begin]), length, mask))
    chunks = []
    begin = singles
    for size in lengths:
        past = int(positions[begin])
        causal = None
        if past:
            seen = torch.ones(size, past + size, dtype=torch.bool, device=device)
            causal = seen.tril(diagonal=past)[None, None]
        chunks.append(Chunk(begin, begin + size, int(slots[begin]), past + size, causal))
        begin += size
    index = torch.from_numpy(np.stack([slots, positions]).astype(np.int64)).to(device)
    return StepPlan(index[0], index[1], spans, chunks)


def slot_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    *,
    slot_plan: StepPlan,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attend with each sequence to its own slot; an attention function in the sense of transformers.

    Args:
        module: the attention layer.
        query: [1, heads, N, head dim], all tokens of the step.
        key: [slots, kv heads, T, head dim], the whole layer.
        value: like `key`.
        attention_mask: unused; the plan has its own.
        scaling: of the scores.
        slot_plan: which token reads which slot, and how far.

    Returns:
        [1, N, heads, head dim] and no weights.
    """
    attend = torch.nn.functional.scaled_dot_product_attention
    heads, kv_heads = query.shape[1], key.shape[1]
    out = query.new_empty(query.shape[2], heads, value.shape[3])
    for span in slot_plan.spans:
        rows = slice(span.slot, span.slot + span.end - span.begin)
        # The heads that share a key head become its queries: no key is repeated.
        queries = query[0, :, span.begin : span.end].transpose(0, 1)
        queries = queries.reshape(len(queries), kv_heads, heads // kv_heads, -1)
        found = attend(
            queries,
            key[rows, :, : span.length],
            value[rows, :, : span.length],
            attn_mask=span.mask,
            scale=scaling,
        )
        out[span.begin : span.end] = found.reshape(len(found), heads, -1)
    for chunk in slot_plan.chunks:
        found = attend(
            query[:, :, chunk.begin : chunk.end],
            key[chunk.slot : chunk.slot + 1, :, : chunk.length],
            value[chunk.slot : chunk.slot + 1, :, : chunk.length],
            attn_mask=chunk.mask,
            is_causal=chunk.mask is None,
            scale=scaling,
            enable_gqa=heads != kv_heads,
        )
        out[chunk.begin : chunk.end] = found[0].transpose(0, 1)
    return out[None], None


def unsupported(config: PreTrainedConfig) -> str | None:
    """Why a model of this configuration cannot run on slots, or `None`."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
    if kinds:
        return f"it has layers of kind {sorted(kinds)}"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return f"it attends to a sliding window of {config.sliding_window} tokens"
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") in ("dynamic", "longrope"):
        return f"its positions ({rope['rope_type']}) depend on the length of the sequence"
    return None

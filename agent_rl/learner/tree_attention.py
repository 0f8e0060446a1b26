"""Attention over a prefix trie: which tokens see which, and which models that is true for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_RECURRENT = ("mamba", "rwkv", "recurrent", "linear", "conv", "ssm")
"""Parts of layer type and model type names that mean a state carried from token to token."""
_TOLERANCE = 1e-2


class UnsupportedModelError(ValueError):
    """The model does not compute a token from its ancestors alone; it needs plain packing."""


def tree_mask(subtree_end: Tensor) -> Tensor:
    """Who sees whom: token i sees j when `j <= i < subtree_end[j]`.

    Args:
        subtree_end: [..., N] as in `Pack`.

    Returns:
        [..., N, N] bool, True where row i may attend to column j.
    """
    index = torch.arange(subtree_end.shape[-1], device=subtree_end.device)
    return (index[None, :] <= index[:, None]) & (index[:, None] < subtree_end[..., None, :])


def check_model(model: Any) -> None:
    """Refuse a model whose layers do not honour a tree mask.

    First by its configuration (a sliding window shows only on long inputs), then by trying: two branches after
    a common prefix must give the logits that they give each by itself.

    Raises:
        UnsupportedModelError: sliding windows, chunked or linear attention, state-space layers, an attention
            implementation that takes no mask, or logits that are not the head applied to the last hidden state.
    """
    config = model.config.get_text_config()
    reason = _unsupported(config)
    if reason is None and config._attn_implementation not in ("sdpa", "eager"):
        reason = f"its attention implementation {config._attn_implementation!r} takes no 4-D mask (load it with 'sdpa')"
    if reason is None:
        gap = _probe_gap(model)
        if not gap < _TOLERANCE:
            reason = (
                f"branches computed together differ from each by itself by {gap:.3g} of the logits' range"
            )
    if reason is not None:
        raise UnsupportedModelError(
            f"prefix sharing needs full attention in every layer, but {config.model_type} does not qualify: {reason}. "
            "Choose a model with full attention; this one would need plain packing, which is not offered yet"
        )


def _unsupported(config: Any) -> str | None:
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        other = sorted({t for t in layer_types if t != "full_attention"})
        return f"it has layers of type {', '.join(other)}" if other else None
    window = getattr(config, "sliding_window", None)
    if window and getattr(config, "use_sliding_window", True):
        return f"it has a sliding window of {window} tokens"
    if getattr(config, "attention_chunk_size", None):
        return f"it attends within chunks of {config.attention_chunk_size} tokens"
    if any(part in config.model_type.lower() for part in _RECURRENT):
        return "it carries a state from token to token"
    return None


@torch.no_grad()
def _probe_gap(model: Any) -> float:
    """Largest difference between merged branches and full model runs, relative to the range of the logits."""
    device = model.device
    vocabulary = model.get_output_embeddings().weight.shape[0]
    prefix, left, right = [1, 2, 3], [4, 5], [5, 4]
    tokens = torch.tensor([prefix + left + right], device=device) % vocabulary
    positions = torch.tensor([[0, 1, 2, 3, 4, 3, 4]], device=device)
    mask = tree_mask(torch.tensor([[7, 7, 7, 5, 5, 7, 7]], device=device))[:, None]
    hidden = base_forward(model, tokens, positions, mask)
    merged = model.get_output_embeddings()(hidden)[0]
    alone = [
        model(input_ids=tokens[:, i], use_cache=False).logits[0] for i in ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6])
    ]
    expected = torch.cat([alone[0], alone[1][3:]])
    gap = (merged - expected).abs().max() / (expected.max() - expected.min()).clamp(min=1e-6)
    return float(gap)


def base_forward(model: Any, token_ids: Tensor, positions: Tensor | None, mask: Tensor | None) -> Tensor:
    """Last hidden states [B, L, H]; without a mask the rows are plain causal sequences.

    Args:
        model: a causal language model of transformers.
        token_ids: [B, L].
        positions: [B, L], or None for 0, 1, 2, ...
        mask: [B, 1, L, L] bool, or None.
    """
    if mask is not None and model.config.get_text_config()._attn_implementation == "eager":
        dtype = model.get_output_embeddings().weight.dtype
        mask = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(
            ~mask, torch.finfo(dtype).min
        )
    hidden: Tensor = model.base_model(
        input_ids=token_ids, position_ids=positions, attention_mask=mask, use_cache=False
    ).last_hidden_state
    return hidden

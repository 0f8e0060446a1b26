"""Which models can share prefixes: those that compute a token from its ancestors alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from agent_rl.learner.forward import hidden_states
from agent_rl.learner.tree_attention import NAME

_STATEFUL = ("mamba", "rwkv", "recurrent", "linear", "conv", "ssm")
"""Parts of model types that mean a state carried from token to token."""
_TOLERANCE = 1e-2


class UnsupportedModelError(ValueError):
    """The model does not compute a token from its ancestors alone; it needs plain packing."""


def prepare(model: Any) -> None:
    """Give a model tree attention, after checking that it honours it.

    First by its configuration (a sliding window shows only on long inputs), then by trying: two branches after
    a common prefix must give the logits that they give each by itself. The model then runs tree attention
    where the learner passes a tree, and SDPA everywhere else.

    Raises:
        UnsupportedModelError: sliding windows, chunked or linear attention, state-space layers, attention that
            SDPA cannot compute, or logits that are not the head applied to the last hidden state.
    """
    config = model.config.get_text_config()
    reason = _unsupported(model, config)
    if reason is None:
        model.set_attn_implementation(NAME)
        reason = _tried(model)
    if reason is not None:
        raise UnsupportedModelError(
            f"prefix sharing needs full attention in every layer, but {config.model_type} does not qualify: {reason}. "
            "Choose a model with full attention; this one would need plain packing, which is not offered yet"
        )


def _unsupported(model: Any, config: Any) -> str | None:
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        other = sorted({t for t in layer_types if t != "full_attention"})
        if other:
            return f"it has layers of type {', '.join(other)}"
    else:
        window = getattr(config, "sliding_window", None)
        if window and getattr(config, "use_sliding_window", True):
            return f"it has a sliding window of {window} tokens"
    if getattr(config, "attention_chunk_size", None):
        return f"it attends within chunks of {config.attention_chunk_size} tokens"
    if any(part in config.model_type.lower() for part in _STATEFUL):
        return "it carries a state from token to token"
    if not getattr(model, "_supports_sdpa", False):
        return "SDPA cannot compute its attention"
    return None


@torch.no_grad()
def _tried(model: Any) -> str | None:
    """Compare two merged branches with the model's own run over each; None when they agree."""
    device = model.device
    head = model.get_output_embeddings()
    tokens = np.array([1, 2, 3, 4, 5, 5, 4]) % head.weight.shape[0]
    alone = [
        model(input_ids=torch.from_numpy(tokens[branch]).to(device)[None], use_cache=False).logits[0]
        for branch in ([0, 1, 2, 3, 4], [0, 1, 2, 5, 6])
    ]
    expected = torch.cat([alone[0], alone[1][3:]])
    try:
        hidden = hidden_states(
            model, tokens, np.array([0, 1, 2, 3, 4, 3, 4]), np.array([7, 7, 7, 5, 5, 7, 7])
        )
    except TypeError as error:  # a forward without keyword arguments for its attention
        return f"it passes nothing on to its attention layers ({error})"
    gap = float((head(hidden) - expected).abs().max() / (expected.max() - expected.min()).clamp(min=1e-6))
    if gap < _TOLERANCE:
        return None
    return f"branches computed together differ from each by itself by {gap:.3g} of the logits' range"

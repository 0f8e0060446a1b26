"""The forward pass over a pack: hidden states of every token of its tries."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from agent_rl.learner import tree_attention
from agent_rl.types.batch import Int64


def hidden_states(model: Any, token_ids: Int64, positions: Int64, subtree_end: Int64) -> Tensor:
    """Last hidden state of every token, [N, H].

    Args:
        model: a causal language model prepared by `support.prepare`.
        token_ids: [N] as in `Pack`, like the others.
        positions: [N].
        subtree_end: [N].

    Raises:
        ValueError: the model was not prepared; it would ignore the tree.
    """
    implementation = model.config.get_text_config()._attn_implementation
    if implementation != tree_attention.NAME:
        raise ValueError(
            f"a pack is computed with tree attention, but the model has {implementation!r}: "
            "call agent_rl.learner.support.prepare(model) first"
        )
    device = model.device
    hidden: Tensor = model.base_model(
        input_ids=torch.from_numpy(token_ids).to(device)[None],
        position_ids=torch.from_numpy(positions).to(device)[None],
        # A mask of four dimensions is taken as it is: transformers then builds none of its own.
        attention_mask=torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device),
        use_cache=False,
        tree=tree_attention.blocks(subtree_end, device),
    ).last_hidden_state
    return hidden[0]

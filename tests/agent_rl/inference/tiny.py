"""A model that is small enough to be fast and random enough that a wrong position or mask shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agent_rl.types import Float32, Int32

VOCAB = 50


def tiny_model(seed: int = 0, *, kv_heads: int = 2, tied: bool = False) -> Any:
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=kv_heads,
            max_position_embeddings=512,
            tie_word_embeddings=tied,
            initializer_range=0.3,  # sharp distributions: log-probabilities depend on every earlier token
        )
    )
    return model.eval()


def prompts(*lengths: int, shared: int = 0) -> tuple[Int32, ...]:
    """Random prompts of these lengths; the first two begin with `shared` equal tokens."""
    rng = np.random.default_rng(1)
    made = [rng.integers(0, VOCAB, n).astype(np.int32) for n in lengths]
    if shared:
        made[1][:shared] = made[0][:shared]
        made[1][shared] = (made[0][shared] + 1) % VOCAB
    return tuple(made)


def plain_logprobs(model: Any, prefix: Int32, token_ids: Int32, temperature: float = 1.0) -> Float32:
    """Log-probabilities of `token_ids` after `prefix` by one ordinary forward pass without any cache."""
    ids = torch.from_numpy(np.concatenate([prefix, token_ids]).astype(np.int64))
    with torch.no_grad():
        logits = model(input_ids=ids[None]).logits[0, len(prefix) - 1 : -1]
    rows = torch.log_softmax(logits / temperature, dim=-1)
    picked: Float32 = rows.gather(1, ids[len(prefix) :, None])[:, 0].numpy()
    return picked

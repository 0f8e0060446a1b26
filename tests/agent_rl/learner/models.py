"""Random models of two layers: enough for every equality, quick enough for hypothesis."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from agent_rl.learner import Learner, LearnerConfig
from agent_rl.losses import LossConfig, make

VOCABULARY = 17


def tiny_llama(seed: int = 0, **options) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,  # peaked enough that ratios move and clip
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        **options,
    )
    return LlamaForCausalLM(config)


def exact_llama(seed: int = 0) -> LlamaForCausalLM:
    """The same with norms in the model's own precision: transformers rounds each to float32, even in float64."""
    model = tiny_llama(seed)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LlamaRMSNorm):
                setattr(parent, name, torch.nn.RMSNorm(child.weight.shape, eps=child.variance_epsilon))
    return model


def tiny_mistral(window: int | None) -> MistralForCausalLM:
    config = MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=window,
    )
    return MistralForCausalLM(config)


def learner(seed: int = 0, loss: LossConfig | None = None, **options) -> Learner:
    return Learner(tiny_llama(seed), LearnerConfig(**options), make(loss or LossConfig()))

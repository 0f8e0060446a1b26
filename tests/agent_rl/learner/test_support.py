from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from agent_rl.learner import Learner, LearnerConfig, UnsupportedModelError
from agent_rl.learner.support import prepare
from agent_rl.losses import LossConfig, make
from tests.agent_rl.learner.models import tiny_llama, tiny_mistral


def test_sliding_windows_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"sliding_attention|sliding window"):
        prepare(tiny_mistral(8))
    with pytest.raises(UnsupportedModelError, match="plain packing"):
        Learner(tiny_mistral(8), LearnerConfig(), make(LossConfig()))


def test_full_attention_passes() -> None:
    prepare(tiny_mistral(None))
    prepare(tiny_llama())
    small = {"vocab_size": 17, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    prepare(Qwen2ForCausalLM(Qwen2Config(**small, num_attention_heads=4, num_key_value_heads=2)))
    eager = tiny_llama()
    eager.set_attn_implementation("eager")
    prepare(eager)


def test_state_space_layers_are_refused() -> None:
    config = MambaConfig(vocab_size=17, hidden_size=16, state_size=4, num_hidden_layers=1)
    with pytest.raises(UnsupportedModelError, match="mamba"):
        prepare(MambaForCausalLM(config))


def test_a_model_that_ignores_the_tree_is_found_by_trying() -> None:
    class Forgetful(LlamaForCausalLM):
        @property
        def base_model(self):
            inner = super().base_model
            return lambda tree, attention_mask, **rest: inner(**rest)

    with pytest.raises(UnsupportedModelError, match="differ from each by itself"):
        prepare(Forgetful(tiny_llama().config))


def test_a_model_that_takes_no_extra_arguments_is_refused() -> None:
    class Strict(LlamaForCausalLM):
        @property
        def base_model(self):
            inner = super().base_model
            return lambda input_ids, position_ids, attention_mask, use_cache: inner(input_ids)

    with pytest.raises(UnsupportedModelError, match="passes nothing on"):
        prepare(Strict(tiny_llama().config))


def test_a_prepared_model_is_otherwise_the_same(tmp_path: Path) -> None:
    model, plain = tiny_llama().eval(), tiny_llama().eval()
    prepare(model)
    tokens = torch.tensor([[0, 0, 1, 2], [3, 4, 5, 6]])
    padding = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    with torch.no_grad():
        expected = plain(tokens, attention_mask=padding).logits
        assert torch.allclose(
            model(tokens, attention_mask=padding).logits[padding.bool()], expected[padding.bool()]
        )
    model.save_pretrained(tmp_path)
    assert "agent_rl_tree" not in (tmp_path / "config.json").read_text()
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


def test_the_configuration_loads_no_torch() -> None:
    packages = "agent_rl.learner.config, agent_rl.losses, agent_rl.credit, agent_rl.batching"
    code = f"import sys, {packages}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

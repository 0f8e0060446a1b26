from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from transformers import LlamaForCausalLM, MambaConfig, MambaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from agent_rl.learner import Learner, LearnerConfig, UnsupportedModelError
from agent_rl.learner.tree_attention import check_model, tree_mask
from agent_rl.losses import LossConfig, make
from tests.agent_rl.learner.models import tiny_llama, tiny_mistral


def test_mask_of_two_answers() -> None:
    # 1 2 7, then 8 and 9: see the example of `Pack`.
    mask = tree_mask(torch.tensor([5, 5, 5, 4, 5])).int().tolist()
    assert mask == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]


def test_sliding_windows_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"sliding_attention|sliding window"):
        check_model(tiny_mistral(8))
    with pytest.raises(UnsupportedModelError, match="plain packing"):
        Learner(tiny_mistral(8), LearnerConfig(), make(LossConfig()))


def test_full_attention_passes() -> None:
    check_model(tiny_mistral(None))
    check_model(tiny_llama())
    small = {"vocab_size": 17, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    check_model(Qwen2ForCausalLM(Qwen2Config(**small, num_attention_heads=4, num_key_value_heads=2)))
    eager = tiny_llama()
    eager.set_attn_implementation("eager")
    check_model(eager)


def test_state_space_layers_are_refused() -> None:
    config = MambaConfig(vocab_size=17, hidden_size=16, state_size=4, num_hidden_layers=1)
    with pytest.raises(UnsupportedModelError, match="mamba"):
        check_model(MambaForCausalLM(config))


def test_a_model_that_ignores_the_mask_is_found_by_trying() -> None:
    class Forgetful(LlamaForCausalLM):
        @property
        def base_model(self):
            inner = super().base_model
            return lambda attention_mask, **rest: inner(attention_mask=None, **rest)

    with pytest.raises(UnsupportedModelError, match="differ from each"):
        check_model(Forgetful(tiny_llama().config))


def test_the_configuration_loads_no_torch() -> None:
    packages = "agent_rl.learner.config, agent_rl.losses, agent_rl.credit, agent_rl.batching"
    code = f"import sys, {packages}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

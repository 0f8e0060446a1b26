from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from agent_rl.inference import EngineConfig, ScriptedEngine, TransformersEngine, conformance
from agent_rl.inference.sampling import uniforms
from agent_rl.types import Int32
from agent_rl.types.seams import Engine, Sampling
from tests.agent_rl.inference.tiny import VOCAB, prompts, tiny_model

PROMPTS = prompts(24, 24, 31, shared=14)


def transformers_engine() -> Engine:
    return TransformersEngine(tiny_model(), config=EngineConfig(max_slots=4, window=160, prefill_chunk=16))


def by_seed(prefix: Int32, sampling: Sampling) -> Sequence[int]:
    return [int(x * VOCAB) for x in uniforms(sampling.seed, sampling.max_new_tokens)]


def scripted_engine() -> Engine:
    return ScriptedEngine(by_seed, window=160, vocab=VOCAB, delay_s=0.001)


@pytest.mark.parametrize("case", conformance.CASES, ids=lambda case: case.name)
def test_transformers_engine(case: conformance.Case) -> None:
    probe = conformance.Probe(
        make=transformers_engine, prompts=PROMPTS, tensors=dict(tiny_model(1).named_parameters())
    )
    asyncio.run(case.run(probe))


@pytest.mark.parametrize("case", conformance.CASES, ids=lambda case: case.name)
def test_scripted_engine(case: conformance.Case) -> None:
    asyncio.run(case.run(conformance.Probe(make=scripted_engine, prompts=PROMPTS, weights_matter=False)))


def test_a_broken_rule_is_named() -> None:
    def forgetful() -> Engine:
        engine = scripted_engine()
        assert isinstance(engine, ScriptedEngine)
        engine._script = lambda prefix, sampling: np.full(sampling.max_new_tokens, 3).tolist()
        return engine

    seeds = next(case for case in conformance.CASES if case.name == "seeds")
    with pytest.raises(AssertionError, match="seeds differ in what they sample"):
        asyncio.run(seeds.run(conformance.Probe(make=forgetful, prompts=PROMPTS)))

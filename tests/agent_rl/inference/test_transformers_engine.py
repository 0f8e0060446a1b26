from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaForCausalLM, MistralConfig, MistralForCausalLM

from agent_rl.inference import EngineConfig, TransformersEngine
from agent_rl.types import Int32
from agent_rl.types.seams import Completion, Sampling
from envs.types import FaultError
from tests.agent_rl.inference.tiny import VOCAB, plain_logprobs, prompts, tiny_model

Body = Callable[[TransformersEngine], Awaitable[Any]]


def run(body: Body, *, model: Any = None, **config: Any) -> Any:
    async def main() -> Any:
        engine = TransformersEngine(
            model or tiny_model(), config=EngineConfig(**{"window": 256, "max_slots": 8, **config})
        )
        try:
            return await body(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


async def episodes(engine: TransformersEngine, n: int = 6, turns: int = 3) -> list[tuple[Int32, Completion]]:
    """Multi-turn episodes in waves, unequal lengths and temperatures; returns every prefix and completion."""
    prefixes = [*prompts(60, 60, 17, 90, 5, 40, shared=35)[:n]]
    record = []
    for turn in range(turns):
        asks = [
            Sampling(
                max_new_tokens=3 + 2 * i, seed=(i, turn), temperature=(1.0, 0.7, 0.0)[i % 3], stop_ids=(7,)
            )
            for i in range(n)
        ]
        wave = await asyncio.gather(*[engine.generate(p, a) for p, a in zip(prefixes, asks, strict=True)])
        for i, done in enumerate(wave):
            record.append((prefixes[i], done))
            news = np.arange(4 + i, dtype=np.int32)
            prefixes[i] = np.concatenate([prefixes[i], done.token_ids, news]).astype(np.int32)
    return record


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("chunk", [7, 512])
def test_logprobs_are_those_of_a_plain_forward(kv_heads: int, chunk: int) -> None:
    record = run(episodes, model=tiny_model(kv_heads=kv_heads), prefill_chunk=chunk)
    plain = tiny_model(kv_heads=kv_heads)
    assert len(record) == 18
    for i, (prefix, done) in enumerate(record):
        temperature = (1.0, 0.7, 1.0)[i % 3]
        expected = plain_logprobs(plain, prefix, done.token_ids, temperature)
        np.testing.assert_allclose(done.logprobs, expected, atol=1e-4)


def test_fewer_slots_than_episodes_change_nothing_but_the_cache() -> None:
    roomy, tight = run(episodes), run(episodes, max_slots=2)
    for (_, a), (_, b) in zip(roomy, tight, strict=True):
        assert a.token_ids.tolist() == b.token_ids.tolist()
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)


def test_equal_waves_on_fresh_engines_are_bitwise_equal() -> None:
    first, second = run(episodes), run(episodes)
    for (_, a), (_, b) in zip(first, second, strict=True):
        assert a.token_ids.tobytes() == b.token_ids.tobytes()
        assert a.logprobs.tobytes() == b.logprobs.tobytes()


def test_a_group_prefills_its_prompt_once() -> None:
    (prompt,) = prompts(100)

    async def body(engine: TransformersEngine) -> None:
        group = [engine.generate(prompt, Sampling(max_new_tokens=4, seed=(i,))) for i in range(8)]
        done = await asyncio.gather(*group)
        # The first computes 100 tokens; each other one its last token, whose logits it samples from.
        assert engine.stats["prefill_tokens"] == 100 + 7
        assert [d.cached_tokens for d in done] == [0] + [99] * 7
        assert engine.stats["cached_tokens"] == engine.stats["copied_tokens"] == 7 * 99
        assert engine.stats["decode_tokens"] == 8 * 4
        assert len({tuple(d.token_ids) for d in done}) > 1

    run(body)


def test_no_stable_prefix_is_computed_twice() -> None:
    async def body(engine: TransformersEngine) -> None:
        (prefix,) = prompts(50)
        for turn in range(4):
            before = engine.stats["prefill_tokens"]
            done = await engine.generate(prefix, Sampling(max_new_tokens=6, seed=(turn,)))
            # Six observation tokens and the last sampled one, whose keys were never needed.
            assert engine.stats["prefill_tokens"] - before == (50 if turn == 0 else 7)
            prefix = np.concatenate([prefix, done.token_ids, np.arange(6)]).astype(np.int32)
        assert engine.stats["copied_tokens"] == 0

    run(body)


def test_a_cancelled_leader_leaves_its_group_alive() -> None:
    (prompt,) = prompts(100)

    async def body(engine: TransformersEngine) -> list[Completion]:
        group = [
            asyncio.ensure_future(engine.generate(prompt, Sampling(max_new_tokens=5, seed=(i,))))
            for i in range(4)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        group[0].cancel()
        done = await asyncio.gather(*group, return_exceptions=True)
        assert isinstance(done[0], asyncio.CancelledError)
        return [d for d in done if isinstance(d, Completion)]

    done = run(body, prefill_chunk=8)
    plain = tiny_model()
    assert len(done) == 3
    for d in done:
        np.testing.assert_allclose(d.logprobs, plain_logprobs(plain, prompt, d.token_ids), atol=1e-4)


def test_entropies_are_those_of_the_distribution() -> None:
    (prompt,) = prompts(20)

    async def body(engine: TransformersEngine) -> Completion:
        return await engine.generate(prompt, Sampling(max_new_tokens=3, seed=(1,), temperature=0.5))

    done = run(body, entropies=True)
    ids = torch.from_numpy(np.concatenate([prompt, done.token_ids]).astype(np.int64))
    with torch.no_grad():
        logits = tiny_model()(input_ids=ids[None]).logits[0, 19:-1] / 0.5
    expected = torch.distributions.Categorical(logits=logits).entropy().numpy()
    np.testing.assert_allclose(done.entropies, expected, atol=1e-4)
    assert run(body).entropies is None


@pytest.mark.parametrize("tied", [False, True])
def test_loaded_weights_are_what_is_sampled_from(tied: bool) -> None:
    (prompt,) = prompts(30)
    new = tiny_model(5, tied=tied)

    async def body(engine: TransformersEngine) -> tuple[Completion, Completion]:
        ask = Sampling(max_new_tokens=12, seed=(1,))
        # Asked in one iteration: the first runs on the old weights, the second on the new ones.
        before, _, after = await asyncio.gather(
            engine.generate(prompt, ask),
            engine.load_weights("main", 1, dict(new.named_parameters())),
            engine.generate(prompt, ask),
        )
        await engine.load_weights("main", 2, new.state_dict())
        return before, after

    before, after = run(body, model=tiny_model(tied=tied))
    assert (set(before.versions), set(after.versions)) == ({0}, {1})
    assert after.cached_tokens == 0
    np.testing.assert_allclose(after.logprobs, plain_logprobs(new, prompt, after.token_ids), atol=1e-4)


def test_wrong_weights_are_named_and_change_nothing() -> None:
    (prompt,) = prompts(30)
    new = dict(tiny_model(5).named_parameters())
    norm = "model.norm.weight"

    async def body(engine: TransformersEngine) -> Completion:
        with pytest.raises(ValueError, match=f"not given: {norm}"):
            await engine.load_weights("main", 1, {k: v for k, v in new.items() if k != norm})
        with pytest.raises(ValueError, match=r"does not have: model\.nrom"):
            await engine.load_weights("main", 1, {**new, "model.nrom": new[norm]})
        with pytest.raises(ValueError, match=r"shape \(3,\); the model's is \(32,\)"):
            await engine.load_weights("main", 1, {**new, norm: torch.ones(3)})
        return await engine.generate(prompt, Sampling(max_new_tokens=4))

    done = run(body)
    assert set(done.versions) == {0}
    np.testing.assert_allclose(done.logprobs, plain_logprobs(tiny_model(), prompt, done.token_ids), atol=1e-4)


def test_a_failed_pass_is_a_fault_for_all_and_the_engine_goes_on() -> None:
    prompt, other = prompts(30, 40)
    model = tiny_model()
    failing = False

    def fail(*_: object) -> None:
        if failing:
            raise RuntimeError("device lost")

    async def body(engine: TransformersEngine) -> Completion:
        nonlocal failing
        await engine.generate(prompt, Sampling(max_new_tokens=4))
        failing = True
        wave = [engine.generate(p, Sampling(max_new_tokens=4)) for p in (prompt, other)]
        for outcome in await asyncio.gather(*wave, return_exceptions=True):
            assert isinstance(outcome, FaultError)
            assert (outcome.fault.kind, outcome.fault.retryable) == ("engine", True)
            assert "device lost" in outcome.fault.detail
        failing = False
        again = await engine.generate(prompt, Sampling(max_new_tokens=4))
        assert again.cached_tokens == 0  # the cache may have been damaged
        return again

    model.model.layers[1].register_forward_pre_hook(fail)
    done = run(body, model=model)
    np.testing.assert_allclose(done.logprobs, plain_logprobs(tiny_model(), prompt, done.token_ids), atol=1e-4)


def test_requests_beyond_the_slots_queue() -> None:
    async def body(engine: TransformersEngine) -> list[Completion]:
        (prompt,) = prompts(20)
        asks = [Sampling(max_new_tokens=20, seed=(i,)) for i in range(3)]
        return await asyncio.gather(*[engine.generate(prompt, ask) for ask in asks])

    first, _, third = run(body, max_slots=2)
    assert third.queue_s > first.queue_s
    assert third.cached_tokens == 19


@pytest.mark.parametrize(
    ("ids", "changes", "message"),
    [
        ([1, VOCAB], {}, f"token id {VOCAB} is outside"),
        ([1, -1], {}, "token id -1 is outside"),
        ([1], {"max_new_tokens": 0}, "at least 1; it is 0"),
        ([1], {"temperature": -1.0}, "at least 0; it is -1"),
        ([1], {"max_new_tokens": 256}, "1 \\+ 256 = 257"),
    ],
)
def test_bad_requests_are_refused_before_they_harm_others(
    ids: list[int], changes: dict[str, Any], message: str
) -> None:
    async def body(engine: TransformersEngine) -> None:
        with pytest.raises(ValueError, match=message):
            await engine.generate(np.array(ids, dtype=np.int32), Sampling(**{"max_new_tokens": 4, **changes}))

    run(body)


def test_models_that_share_a_configuration_keep_their_own_attention() -> None:
    model = tiny_model()
    twin = LlamaForCausalLM(model.config)

    async def body(engine: TransformersEngine) -> None:
        return None

    run(body, model=model)
    assert twin(input_ids=torch.tensor([[1, 2, 3]])).logits.shape == (1, 3, VOCAB)
    assert twin.config._attn_implementation == "sdpa"


def test_unfit_models_are_refused() -> None:
    sliding = MistralForCausalLM(
        MistralConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            sliding_window=16,
        )
    )
    with pytest.raises(ValueError, match="sliding window of 16"):
        TransformersEngine(sliding)
    with pytest.raises(ValueError, match="set window=512"):
        TransformersEngine(tiny_model(), config=EngineConfig(window=1024))

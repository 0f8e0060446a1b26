"""What every engine must do, as named cases that run against any of them.

```python
@pytest.mark.parametrize("case", conformance.CASES, ids=lambda case: case.name)
def test_engine(case):
    asyncio.run(case.run(my_probe))
```

A broken rule raises AssertionError with the rule and what was seen instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_rl.types import Int32
from agent_rl.types.seams import Completion, Engine, Sampling
from envs.types import FaultError


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """An engine to be tested, and what a test may ask of it."""

    make: Callable[[], Engine]
    """An equal fresh engine each time, with version 0 of the policy `main`. The case closes it."""
    prompts: tuple[Int32, ...]
    """At least three different ones of at least 24 tokens; the first two share their first half."""
    tensors: Mapping[str, Any] = field(default_factory=dict)
    """Other weights than the engine begins with."""
    weights_matter: bool = True
    """Whether other weights give other log-probabilities."""
    tokens: int = 8
    """New tokens a case asks for; four times as many and the longest prompt, twice, fit the window."""


@dataclass(frozen=True, slots=True)
class Case:
    """One rule."""

    name: str
    check: Callable[[Engine, Probe], Awaitable[None]]

    async def run(self, probe: Probe) -> None:
        """Check the rule on a fresh engine.

        Raises:
            AssertionError: the engine breaks it.
        """
        engine = probe.make()
        try:
            await self.check(engine, probe)
        finally:
            await engine.close()


def _ask(probe: Probe, *seed: int | str, **changes: Any) -> Sampling:
    return Sampling(**{"max_new_tokens": probe.tokens, "seed": seed, **changes})


def _same(a: Completion, b: Completion) -> bool:
    return bool(np.array_equal(a.token_ids, b.token_ids))


def _require(holds: bool, rule: str, seen: object) -> None:
    if not holds:
        raise AssertionError(f"{rule}; seen: {seen}")


async def _length(engine: Engine, probe: Probe) -> None:
    done = await engine.generate(probe.prompts[0], _ask(probe, "length"))
    shapes = [len(x) for x in (done.token_ids, done.logprobs, done.versions)]
    _require(shapes == [probe.tokens] * 3, "without stop ids max_new_tokens tokens are sampled", shapes)
    _require(done.stop == "length", "such a completion stops by length", done.stop)
    _require(bool((done.logprobs <= 0).all()), "log-probabilities are at most 0", done.logprobs)
    dtypes = [x.dtype.name for x in (done.token_ids, done.logprobs, done.versions)]
    _require(dtypes == ["int32", "float32", "int32"], "dtypes are int32, float32, int32", dtypes)
    _require(done.queue_s >= 0 and done.run_s > 0, "times are measured", (done.queue_s, done.run_s))


async def _stop(engine: Engine, probe: Probe) -> None:
    free = await engine.generate(probe.prompts[0], _ask(probe, "stop"))
    tokens = free.token_ids.tolist()
    end = tokens[probe.tokens // 2]
    cut = await engine.generate(probe.prompts[0], _ask(probe, "stop", stop_ids=(end,)))
    expected = tokens[: tokens.index(end) + 1]
    _require(
        cut.token_ids.tolist() == expected, f"a stop id is the last token: {expected}", cut.token_ids.tolist()
    )
    _require(cut.stop == "stop", "such a completion stops by its stop id", cut.stop)


async def _refuses(engine: Engine, prefix: Int32, sampling: Sampling, policy: str, rule: str) -> None:
    try:
        await engine.generate(prefix, sampling, policy)
    except ValueError:
        return
    raise AssertionError(f"{rule}; seen: an answer")


async def _window(engine: Engine, probe: Probe) -> None:
    prompt = probe.prompts[0]
    room = engine.window - len(prompt)
    await _refuses(
        engine,
        prompt,
        _ask(probe, max_new_tokens=room + 1),
        "main",
        "prefix and max_new_tokens beyond the window raise ValueError",
    )
    await _refuses(engine, prompt[:0], _ask(probe), "main", "an empty prefix raises ValueError")
    await _refuses(engine, prompt, _ask(probe), "no such policy", "an unknown policy raises ValueError")
    last = await engine.generate(prompt, _ask(probe, max_new_tokens=room))
    _require(len(last.token_ids) == room, "the window can be filled to its last token", len(last.token_ids))


async def _seeds(engine: Engine, probe: Probe) -> None:
    first, again = [await engine.generate(probe.prompts[0], _ask(probe, "a", 1)) for _ in range(2)]
    _require(_same(first, again), "one seed gives the same tokens", (first.token_ids, again.token_ids))
    others = [await engine.generate(probe.prompts[0], _ask(probe, "a", i)) for i in range(2, 8)]
    _require(not all(_same(first, o) for o in others), "seeds differ in what they sample", first.token_ids)


async def _greedy(engine: Engine, probe: Probe) -> None:
    done = [await engine.generate(probe.prompts[0], _ask(probe, i, temperature=0.0)) for i in range(2)]
    logprobs = [d.logprobs for d in done]
    _require(bool(np.isfinite(logprobs).all()), "at temperature 0 log-probabilities are finite", logprobs)


async def _batch(engine: Engine, probe: Probe) -> None:
    asks = [(prompt, _ask(probe, "batch", i)) for i, prompt in enumerate(probe.prompts * 2)]
    alone = [await engine.generate(prompt, sampling) for prompt, sampling in asks]
    together = await asyncio.gather(*[engine.generate(prompt, sampling) for prompt, sampling in asks])
    for a, b in zip(alone, together, strict=True):
        _require(_same(a, b), "a request samples the same alone and in a batch", (a.token_ids, b.token_ids))
        worst = float(np.abs(a.logprobs - b.logprobs).max())
        _require(worst < 1e-4, "its log-probabilities agree to 1e-4", worst)


async def _prefix(engine: Engine, probe: Probe) -> None:
    prompt, sibling = probe.prompts[:2]
    first = await engine.generate(prompt, _ask(probe, "prefix"))
    _require(first.cached_tokens == 0, "a new engine has nothing cached", first.cached_tokens)
    longer = np.concatenate([prompt, first.token_ids, prompt[:5]]).astype(np.int32)
    second = await engine.generate(longer, _ask(probe, "prefix", 2))
    # The last sampled token may be left: its keys and values were never needed.
    least = len(prompt) + len(first.token_ids) - 1
    _require(
        second.cached_tokens >= least, f"a next turn reuses at least {least} tokens", second.cached_tokens
    )
    other = await engine.generate(sibling, _ask(probe, "prefix", 3))
    shared = int(np.argmin(prompt == sibling)) if len(prompt) == len(sibling) else len(prompt) // 2
    _require(
        other.cached_tokens >= shared,
        f"episodes share the {shared} tokens they begin with",
        other.cached_tokens,
    )


async def _weights(engine: Engine, probe: Probe) -> None:
    before = await engine.generate(probe.prompts[0], _ask(probe, "w"))
    await engine.load_weights("main", 7, probe.tensors)
    after = await engine.generate(probe.prompts[0], _ask(probe, "w"))
    versions = (before.versions.tolist(), after.versions.tolist())
    _require(set(versions[0]) == {0} and set(versions[1]) == {7}, "each token has its version", versions)
    _require(after.cached_tokens == 0, "new weights reuse nothing of old ones", after.cached_tokens)
    if probe.weights_matter:
        changed = not np.allclose(before.logprobs, after.logprobs, atol=1e-6)
        _require(changed, "new weights give new log-probabilities", after.logprobs)
    try:
        await engine.load_weights("no such policy", 8, probe.tensors)
    except ValueError:
        return
    raise AssertionError("loading an unknown policy raises ValueError; seen: no error")


async def _cancellation(engine: Engine, probe: Probe) -> None:
    expected = await engine.generate(probe.prompts[0], _ask(probe, "c"))
    for i in range(20):
        room = engine.window - max(len(p) for p in probe.prompts)
        asks = [_ask(probe, i, j, max_new_tokens=room) for j in range(len(probe.prompts))]
        tasks = [
            asyncio.ensure_future(engine.generate(p, s)) for p, s in zip(probe.prompts, asks, strict=True)
        ]
        for _ in range(i % 4):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    again = await engine.generate(probe.prompts[0], _ask(probe, "c"))
    _require(_same(expected, again), "cancelled requests leave no trace", again.token_ids)


async def _close(engine: Engine, probe: Probe) -> None:
    room = engine.window - len(probe.prompts[0])
    task = asyncio.ensure_future(engine.generate(probe.prompts[0], _ask(probe, max_new_tokens=room)))
    await asyncio.sleep(0)
    await engine.close()
    done = await task
    _require(
        done.stop == "cancelled" or len(done.token_ids) == room,
        "what is pending when the engine closes ends as cancelled",
        done.stop,
    )
    try:
        await engine.generate(probe.prompts[0], _ask(probe))
    except FaultError as error:
        _require(error.fault.kind == "engine", "a closed engine raises a fault of kind engine", error.fault)
        return
    raise AssertionError("a closed engine raises FaultError; seen: an answer")


CASES: tuple[Case, ...] = (
    Case("length", _length),
    Case("stop_included", _stop),
    Case("window_and_policy", _window),
    Case("seeds", _seeds),
    Case("greedy", _greedy),
    Case("batch_independence", _batch),
    Case("prefix_reuse", _prefix),
    Case("weights_and_versions", _weights),
    Case("cancellation", _cancellation),
    Case("close", _close),
)

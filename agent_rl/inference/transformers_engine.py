"""Continuous batching over many live episodes around a transformers causal LM, in one process.

```
 event loop   generate ─┐ generate ─┐ load_weights ─┐      calls of one loop iteration become one wave,
                        └─── wave ──┴───────────────┘      in call order
 engine thread    inbox ──> scheduler: admit, step, step, ... ──> answers back to their event loops
```

* **Prefixes are reused.** Every slot remembers what it computed; a next turn continues where the last one
  ended, a branch or a sibling copies the shared rows, and equal prompts of one wave are computed once.
* **Waves are atomic.** Requests made in one iteration of an event loop enter together, so that a barrier of
  episodes is batched the same way in every run. Equal waves on a fresh engine give bitwise equal answers;
  requests that trickle in are batched as they come, and their log-probabilities differ by about 1e-6.
* **Weights change between requests.** `load_weights` waits until everything asked before it is answered;
  what is asked after it waits, runs on the new weights and finds an empty cache.

One model is one policy with full weights. Not covered: adapters, sliding windows, several GPUs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from agent_rl.inference.config import EngineConfig
from agent_rl.inference.decoder import Decoder
from agent_rl.inference.request import Request, check
from agent_rl.inference.scheduler import Scheduler
from agent_rl.types import Int32
from agent_rl.types.seams import Completion, Sampling
from envs.types import Fault, FaultError


class _Load:
    """A call of `load_weights` on its way through the engine."""

    def __init__(self, version: int, tensors: Mapping[str, Any]) -> None:
        self.version = version
        self.tensors = tensors
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()


_Work = Request | _Load
_Settled = tuple[asyncio.Future[Any], Any]


class TransformersEngine:
    """An `Engine` (see `agent_rl.types.seams`) that owns the given model and decodes with it.

    Args:
        model: a causal LM of transformers with full attention in every layer (Llama, Qwen, Mistral, ...).
            The engine owns it: it becomes eval mode without gradients and is not to be used elsewhere.
        config: sizes.
        policy: the name of the model's policy.
        version: of the weights that the model has now.

    Raises:
        ValueError: the model cannot be decoded on slots, or the window exceeds its positions.
    """

    def __init__(
        self, model: Any, config: EngineConfig | None = None, *, policy: str = "main", version: int = 0
    ) -> None:
        self._config = config or EngineConfig()
        self._policy = policy
        if self._config.threads is not None:
            torch.set_num_threads(self._config.threads)
        self._decoder = Decoder(model, max_slots=self._config.max_slots, window=self._config.window)
        self._scheduler = Scheduler(self._decoder, self._config)
        self._scheduler.version = version
        self._waves: dict[asyncio.AbstractEventLoop, list[_Work]] = {}
        self._inbox: deque[_Work] = deque()
        self._wakeup = threading.Condition()
        self._closed = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="transformers-engine", daemon=True)
        self._thread.start()

    @property
    def window(self) -> int:
        """Most tokens of prefix and completion together."""
        return self._config.window

    @property
    def version(self) -> int:
        """Version of the weights that the engine has now; a load that waits does not count."""
        return self._scheduler.version

    @property
    def stats(self) -> dict[str, int]:
        """Counts since the start.

        `steps` (forward passes), `prefill_tokens` (prefix tokens computed), `cached_tokens` (prefix tokens
        reused), `copied_tokens` (of these, copied from another slot), `decode_tokens` (tokens sampled) and
        `cache_bytes` (memory of keys and values now).
        """
        return {**self._scheduler.stats, "cache_bytes": self._decoder.cache_bytes}

    async def generate(self, token_ids: Int32, sampling: Sampling, policy: str = "main") -> Completion:
        """Sample one action after `token_ids` [P]; cancelling the awaiting task frees the slot.

        The seed alone decides the randomness: samples of one prompt need different seeds to differ.

        Raises:
            ValueError: the request does not fit the window, is malformed, or names another policy.
            FaultError: of kind `engine`: the forward pass failed (retryable unless the weights hold NaN), or the
                engine is closed.
        """
        self._check_policy(policy)
        check(np.asarray(token_ids), sampling, self.window, self._decoder.vocab)
        request = Request(token_ids, sampling)
        self._submit(request)
        try:
            return await request.future
        except asyncio.CancelledError:
            request.cancelled = True
            raise

    async def load_weights(self, policy: str, version: int, tensors: Mapping[str, Any]) -> None:
        """Replace all weights in place once everything asked before is answered, and empty the cache.

        Args:
            policy: the engine's only policy.
            version: recorded with every token sampled from now on.
            tensors: all of them, by the model's names; tied ones under either name.

        Raises:
            ValueError: another policy; names that are unknown or missing, shapes that differ. The engine
                then goes on with the weights it has.
            FaultError: the engine is closed, or failed half-way: publish again.
        """
        self._check_policy(policy)
        load = _Load(version, tensors)
        self._submit(load)
        await load.future

    async def close(self) -> None:
        """Stop after the current step; pending requests end as cancelled."""
        with self._wakeup:
            self._closed = True
            self._wakeup.notify()
        await asyncio.to_thread(self._thread.join)

    # ------------------------------------------------------------------------------------ event loop side

    def _check_policy(self, policy: str) -> None:
        if policy != self._policy:
            raise ValueError(f"this engine serves the policy {self._policy!r}; it was asked for {policy!r}")

    def _submit(self, work: _Work) -> None:
        if self._closed:
            raise _fault("the engine is closed; build a new one", retryable=False)
        loop = asyncio.get_running_loop()
        if loop not in self._waves:
            self._waves[loop] = []
            # Runs after everything that is ready now: whoever else asks in this iteration joins the wave.
            loop.call_soon(self._flush, loop)
        self._waves[loop].append(work)

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._wakeup:
            self._inbox.extend(self._waves.pop(loop))
            self._wakeup.notify()
            stopped = self._stopped
        if stopped:  # closed between submit and flush
            _deliver(self._pending())

    # ---------------------------------------------------------------------------------- engine thread side

    def _run(self) -> None:
        """Serve until closed. Nothing else touches scheduler and model."""
        arrived: deque[_Work] = deque()
        while True:
            with self._wakeup:
                while not (self._inbox or arrived or self._scheduler.busy or self._closed):
                    self._wakeup.wait()
                if self._closed:
                    self._inbox.extendleft(reversed(arrived))
                    break
                arrived.extend(self._inbox)
                self._inbox.clear()
            try:
                with torch.inference_mode():
                    self._advance(arrived)
            except Exception as error:  # noqa: BLE001 - the boundary where a failed pass becomes a fault
                pending = [*self._scheduler.drop(), *arrived]
                arrived.clear()
                detail = f"{type(error).__name__}: {error}"
                retryable = not isinstance(error, FloatingPointError)  # weights with NaN stay so
                _answer([(work.future, _fault(detail, retryable=retryable)) for work in pending])
        _answer(self._pending())

    def _advance(self, arrived: deque[_Work]) -> None:
        """Hand over what arrived, up to a load that has to wait, and do one step."""
        while arrived:
            work = arrived[0]
            if isinstance(work, Request):
                self._scheduler.add(work)
            elif self._scheduler.busy:
                break
            else:
                self._load(work)
            arrived.popleft()
        answers = self._scheduler.step()
        if answers:
            _answer([(request.future, completion) for request, completion in answers])

    def _load(self, load: _Load) -> None:
        outcome: Any = None
        try:
            self._scheduler.load(load.version, load.tensors)
        except (ValueError, TypeError) as error:
            outcome = error
        _answer([(load.future, outcome)])

    def _pending(self) -> list[_Settled]:
        """What is left when the engine closes: requests end as cancelled, loads as faults."""
        with self._wakeup:
            self._stopped = True
            left: list[_Work] = [*self._scheduler.drop(), *self._inbox]
            self._inbox.clear()
        return [
            (work.future, work.completion("cancelled", entropies=self._config.entropies))
            if isinstance(work, Request)
            else (
                work.future,
                _fault("the engine was closed before the weights were loaded", retryable=False),
            )
            for work in left
        ]


def _fault(detail: str, *, retryable: bool) -> FaultError:
    return FaultError(Fault(kind="engine", stage="generate", retryable=retryable, detail=detail))


def _answer(settled: list[_Settled]) -> None:
    """Settle futures on their own event loops, all of one loop in one callback."""
    loops: dict[asyncio.AbstractEventLoop, list[_Settled]] = {}
    for future, outcome in settled:
        loops.setdefault(future.get_loop(), []).append((future, outcome))
    for loop, group in loops.items():
        try:
            loop.call_soon_threadsafe(_deliver, group)
        except RuntimeError:
            # The loop was closed: nobody waits for these any more.
            continue


def _deliver(settled: list[_Settled]) -> None:
    for future, outcome in settled:
        if future.done():  # cancelled meanwhile
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

"""One call of `generate` on its way through the engine."""

from __future__ import annotations

import asyncio
import time
from typing import Literal

import numpy as np

from agent_rl.inference.sampling import uniforms
from agent_rl.types import Float32, Int32
from agent_rl.types.seams import Completion, Sampling


def check(token_ids: Int32, sampling: Sampling, window: int, vocab: int) -> None:
    """Refuse a request that no engine could answer.

    Raises:
        ValueError: an empty prefix, ids outside the vocabulary, a length outside the window, a bad
            temperature.
    """
    if token_ids.ndim != 1 or not len(token_ids):
        raise ValueError(f"a prefix is one row of at least one token; its shape is {token_ids.shape}")
    if token_ids.min() < 0 or token_ids.max() >= vocab:
        bad = token_ids[(token_ids < 0) | (token_ids >= vocab)][0]
        raise ValueError(f"token id {bad} is outside the vocabulary of {vocab}")
    if sampling.max_new_tokens < 1:
        raise ValueError(f"max_new_tokens is at least 1; it is {sampling.max_new_tokens}")
    if not 0.0 <= sampling.temperature < float("inf"):
        raise ValueError(f"temperature is finite and at least 0; it is {sampling.temperature}")
    if len(token_ids) + sampling.max_new_tokens > window:
        raise ValueError(
            f"prefix and max_new_tokens fit the window of {window} tokens; they are {len(token_ids)} + "
            f"{sampling.max_new_tokens} = {len(token_ids) + sampling.max_new_tokens}: shorten one, or end "
            "the episode as truncated"
        )


class Request:
    """A request's tokens, randomness and answer. The engine thread writes everything but `cancelled`."""

    def __init__(self, token_ids: Int32, sampling: Sampling) -> None:
        self.prefix: Int32 = np.array(token_ids, dtype=np.int32)  # a copy: the caller may go on with its own
        self.sampling = sampling
        self.future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self.cancelled = False
        """Set by the event loop's thread, read between steps."""
        self.cached_tokens = 0
        self.waits_for: tuple[int, int] | None = None
        """Slot and length of a prefix that another request is computing; its rows are copied then."""
        self.n = 0
        """Tokens sampled."""
        self._draws = uniforms(sampling.seed, sampling.max_new_tokens)
        self._stop_ids = frozenset(sampling.stop_ids)
        self._token_ids: Int32 = np.empty(sampling.max_new_tokens, dtype=np.int32)
        self._logprobs: Float32 = np.empty(sampling.max_new_tokens, dtype=np.float32)
        self._versions: Int32 = np.empty(sampling.max_new_tokens, dtype=np.int32)
        self._entropies: Float32 = np.empty(sampling.max_new_tokens, dtype=np.float32)
        self._submitted_s = time.perf_counter()
        self._admitted_s: float | None = None

    @property
    def length(self) -> int:
        """Tokens known: prefix and sampled ones."""
        return len(self.prefix) + self.n

    @property
    def draw(self) -> float:
        """The uniform number that the next token is sampled with."""
        return float(self._draws[self.n])

    def admit(self) -> None:
        """Note that the request has a slot."""
        self._admitted_s = time.perf_counter()

    def accept(
        self, token_id: int, logprob: float, entropy: float, version: int
    ) -> Literal["stop", "length"] | None:
        """Record a sampled token; returns `stop` or `length` when it was the last one."""
        self._token_ids[self.n] = token_id
        self._logprobs[self.n] = logprob
        self._entropies[self.n] = entropy
        self._versions[self.n] = version
        self.n += 1
        if token_id in self._stop_ids:
            return "stop"
        return "length" if self.n == self.sampling.max_new_tokens else None

    def completion(self, stop: Literal["stop", "length", "cancelled"], *, entropies: bool) -> Completion:
        """What was sampled so far."""
        now = time.perf_counter()
        admitted = self._admitted_s if self._admitted_s is not None else now
        return Completion(
            token_ids=self._token_ids[: self.n].copy(),
            logprobs=self._logprobs[: self.n].copy(),
            versions=self._versions[: self.n].copy(),
            stop=stop,
            queue_s=admitted - self._submitted_s,
            run_s=now - admitted,
            cached_tokens=self.cached_tokens,
            entropies=self._entropies[: self.n].copy() if entropies else None,
        )

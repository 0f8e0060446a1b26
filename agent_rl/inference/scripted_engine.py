"""An engine that plays back a script: for testing rollouts, collectors and trainers without a model.

It keeps the whole contract of `agent_rl.types.seams.Engine` (stop ids, limits, versions, cancellation,
cached prefixes) and passes the same conformance suite as the real ones. Its log-probabilities are plausible
and repeatable numbers; no distribution stands behind them.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from agent_rl.types import Float32, Int32
from agent_rl.types.seams import Completion, Sampling
from envs.types import Fault, FaultError

Answer = Sequence[int] | FaultError
Script = Callable[[Int32, Sampling], Answer]


class ScriptedEngine:
    """Answers every request with the token ids that a script gives.

    Args:
        script: a function of prefix and sampling, or a list that is played in order of the requests and ends
            with an error. An answer is cut after its first stop id and at `max_new_tokens`; one that ends
            before either gets the request's first stop id. A `FaultError`, returned or raised, fails the
            request.
        window: most tokens of prefix and completion together.
        vocab: ids must be below it.
        delay_s: how long a request takes, a number or a function of its sampling.
        version: of the weights at first.
        policies: names that are served.

    ```python
    engine = ScriptedEngine([[5, 6, 2], FaultError(fault), [7, 2]], window=128, vocab=10)
    ```
    """

    def __init__(
        self,
        script: Script | Sequence[Answer],
        *,
        window: int,
        vocab: int,
        delay_s: float | Callable[[Sampling], float] = 0.0,
        version: int = 0,
        policies: Sequence[str] = ("main",),
    ) -> None:
        self.requests: list[tuple[Int32, Sampling]] = []
        """Every prefix and sampling asked for, in order."""
        self.loads: list[tuple[str, int]] = []
        """Policy and version of every `load_weights`."""
        self._script = script
        self._window = window
        self._vocab = vocab
        self._delay_s = delay_s
        self._versions = dict.fromkeys(policies, version)
        self._seen: dict[str, list[Int32]] = {policy: [] for policy in policies}
        self._closed = asyncio.Event()

    @property
    def window(self) -> int:
        """Most tokens of prefix and completion together."""
        return self._window

    async def generate(self, token_ids: Int32, sampling: Sampling, policy: str = "main") -> Completion:
        """Answer from the script after the delay.

        Raises:
            ValueError: the request does not fit the window or names an unknown policy; the script gave an id
                outside the vocabulary.
            FaultError: the script said so, or the engine is closed.
            IndexError: the list of answers is used up.
        """
        prefix: Int32 = np.array(token_ids, dtype=np.int32)
        self._check(prefix, sampling, policy)
        if self._closed.is_set():
            raise FaultError(Fault(kind="engine", stage="generate", detail="the engine is closed"))
        began = time.perf_counter()
        answer = self._answer(prefix, sampling)
        delay_s = self._delay_s(sampling) if callable(self._delay_s) else self._delay_s
        if await self._closes_within(delay_s):
            return _completion([], [], self._versions[policy], "cancelled", time.perf_counter() - began, 0)
        if isinstance(answer, FaultError):
            raise answer
        tokens, stop = _cut(list(answer), sampling)
        bad = [token for token in tokens if not 0 <= token < self._vocab]
        if bad:
            raise ValueError(f"the script gave token id {bad[0]}, outside the vocabulary of {self._vocab}")
        cached = self._remember(prefix, tokens, policy)
        return _completion(
            tokens,
            [_logprob(sampling, i, token) for i, token in enumerate(tokens)],
            self._versions[policy],
            stop,
            time.perf_counter() - began,
            cached,
        )

    async def load_weights(self, policy: str, version: int, tensors: Mapping[str, Any]) -> None:
        """Count up the version and forget cached prefixes; the tensors are not looked at."""
        self._check_policy(policy)
        self.loads.append((policy, version))
        self._versions[policy] = version
        self._seen[policy].clear()

    async def close(self) -> None:
        """Stop; requests in their delay end as cancelled."""
        self._closed.set()

    def _answer(self, prefix: Int32, sampling: Sampling) -> Answer:
        index = len(self.requests)
        self.requests.append((prefix, sampling))
        if callable(self._script):
            return self._script(prefix, sampling)
        if index >= len(self._script):
            raise IndexError(f"the script has {len(self._script)} answers; request {index + 1} came")
        return self._script[index]

    async def _closes_within(self, delay_s: float) -> bool:
        if not delay_s:
            await asyncio.sleep(0)
            return self._closed.is_set()
        try:
            await asyncio.wait_for(self._closed.wait(), delay_s)
        except TimeoutError:
            return False
        return True

    def _check_policy(self, policy: str) -> None:
        if policy not in self._versions:
            raise ValueError(
                f"this engine serves the policies {sorted(self._versions)}; it was asked for {policy!r}"
            )

    def _check(self, prefix: Int32, sampling: Sampling, policy: str) -> None:
        self._check_policy(policy)
        if not len(prefix) or sampling.max_new_tokens < 1:
            raise ValueError(
                "prefix and max_new_tokens are at least 1; "
                f"they are {len(prefix)} and {sampling.max_new_tokens}"
            )
        if len(prefix) + sampling.max_new_tokens > self._window:
            raise ValueError(
                f"prefix and max_new_tokens fit the window of {self._window} tokens; they are "
                f"{len(prefix)} + {sampling.max_new_tokens}: shorten one, or end the episode as truncated"
            )

    def _remember(self, prefix: Int32, tokens: list[int], policy: str) -> int:
        """Tokens of the prefix that an earlier request of this version had, the last one left out."""
        cached = max((_common(prefix[:-1], seen) for seen in self._seen[policy]), default=0)
        self._seen[policy].append(np.concatenate([prefix, np.array(tokens[:-1], dtype=np.int32)]))
        return cached


def _completion(
    tokens: list[int],
    logprobs: list[float],
    version: int,
    stop: Literal["stop", "length", "cancelled"],
    run_s: float,
    cached: int,
) -> Completion:
    sampled: Float32 = np.array(logprobs, dtype=np.float32)
    return Completion(
        token_ids=np.array(tokens, dtype=np.int32),
        logprobs=sampled,
        versions=np.full(len(tokens), version, dtype=np.int32),
        stop=stop,
        run_s=run_s,
        cached_tokens=cached,
    )


def _cut(tokens: list[int], sampling: Sampling) -> tuple[list[int], Literal["stop", "length"]]:
    if not tokens:
        raise ValueError("the script gave no token; an answer has at least one")
    for i, token in enumerate(tokens[: sampling.max_new_tokens]):
        if token in sampling.stop_ids:
            return tokens[: i + 1], "stop"
    if len(tokens) >= sampling.max_new_tokens:
        return tokens[: sampling.max_new_tokens], "length"
    if not sampling.stop_ids:
        raise ValueError(
            f"the script gave {len(tokens)} of {sampling.max_new_tokens} tokens and the request has no stop id; "
            "give more tokens or ask with stop_ids"
        )
    return [*tokens, sampling.stop_ids[0]], "stop"


def _common(prefix: Int32, other: Int32) -> int:
    n = min(len(prefix), len(other))
    differs = np.flatnonzero(prefix[:n] != other[:n])
    return int(differs[0]) if len(differs) else n


def _logprob(sampling: Sampling, position: int, token: int) -> float:
    """A number in [-3, -0.01] that depends on seed, position and token alone."""
    digest = hashlib.blake2b(repr((sampling.seed, position, token)).encode(), digest_size=4).digest()
    return -0.01 - 2.99 * int.from_bytes(digest, "little") / 2**32

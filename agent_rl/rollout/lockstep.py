"""Deterministic mode: a barrier in front of the engine.

Which requests share a forward pass changes log-probabilities by about 3e-7, so equal weights on resume need equal
waves. The barrier holds every request until all live participants wait, then sends them in the order of their
keys. A participant is an episode, or a group that is about to start some.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from agent_rl.types.node import Int32
from agent_rl.types.seams import Completion, Engine, Sampling


class Lockstep:
    """An engine whose requests travel in waves."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.live = 0
        self._waiting: list[tuple[tuple[int | str, ...], asyncio.Future[None]]] = []

    def enter(self) -> None:
        """One more participant; call it before the participant can ask for anything."""
        self.live += 1

    def leave(self) -> None:
        """One participant fewer; the wave goes out if everybody else waits."""
        self.live -= 1
        self._release()

    async def generate(self, token_ids: Int32, sampling: Sampling, policy: str = "main") -> Completion:
        """Wait for the wave, then generate."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((sampling.seed, turn))
        self._release()
        await turn
        return await self.engine.generate(token_ids, sampling, policy)

    def _release(self) -> None:
        self._waiting = [(key, turn) for key, turn in self._waiting if not turn.done()]
        if self._waiting and len(self._waiting) >= self.live:
            wave, self._waiting = sorted(self._waiting, key=lambda w: tuple(map(str, w[0]))), []
            # Not at once: the request that completes the wave is not waiting yet and would overtake the others.
            asyncio.get_running_loop().call_soon(_send, [turn for _, turn in wave])

    async def load_weights(self, policy: str, version: int, tensors: Mapping[str, Any]) -> None:
        """Passed on."""
        await self.engine.load_weights(policy, version, tensors)

    @property
    def window(self) -> int:
        """The engine's."""
        return self.engine.window

    async def close(self) -> None:
        """Passed on."""
        await self.engine.close()


def _send(wave: list[asyncio.Future[None]]) -> None:
    for turn in wave:
        if not turn.done():
            turn.set_result(None)

"""The asynchronous twins of an environment's methods."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol, Self, TypeVar

from envs.types import Snapshot, Step
from tools.types import Message


class _Sync(Protocol):
    """What the twins call."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]: ...

    def step(self, action: Message | str) -> Step: ...

    def snapshot(self) -> Snapshot: ...

    def restore(self, snapshot: Snapshot) -> Self: ...

    def close(self) -> None: ...


E = TypeVar("E", bound=_Sync)


class AsyncTwins:
    """Runs each method in a thread; a natively asynchronous environment overrides all five."""

    async def areset(
        self: _Sync, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """`reset` in a thread."""
        return await asyncio.to_thread(self.reset, seed=seed, options=options)

    async def astep(self: _Sync, action: Message | str) -> Step:
        """`step` in a thread."""
        return await asyncio.to_thread(self.step, action)

    async def asnapshot(self: _Sync) -> Snapshot:
        """`snapshot` in a thread."""
        return await asyncio.to_thread(self.snapshot)

    async def arestore(self: E, snapshot: Snapshot) -> E:
        """`restore` in a thread."""
        return await asyncio.to_thread(self.restore, snapshot)

    async def aclose(self: _Sync) -> None:
        """`close` in a thread."""
        await asyncio.to_thread(self.close)

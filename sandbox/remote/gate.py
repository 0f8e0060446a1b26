"""Admission: a bounded number of places, a bounded number of those who wait, fair among clients."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandbox.remote.refusals import Refused

RETRY_AFTER_S = 1


class Gate:
    """Used from one event loop. A free place goes to the waiting client that occupies the fewest."""

    def __init__(self, places: int, waiting: int, per_client: int) -> None:
        self._free, self._room, self._per_client = places, waiting, per_client
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._inside: Counter[str] = Counter()
        self._present: Counter[str] = Counter()  # inside or waiting

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[float]:
        """Occupy a place; gives the seconds that it took to get one.

        Raises:
            Refused: `overloaded`, or `draining` when the gate was shut meanwhile.
        """
        started = time.monotonic()
        if self._present[client] >= self._per_client:
            raise _overloaded(f"this client has {self._per_client} programs running or waiting")
        self._present[client] += 1
        try:
            await self._enter(client)
            self._inside[client] += 1
            try:
                yield time.monotonic() - started
            finally:
                self._inside -= Counter((client,))
                self._leave()
        finally:
            self._present -= Counter((client,))

    def shut(self) -> None:
        """Send away those who wait, and refuse who comes."""
        self._room = 0
        for queue in self._waiting.values():
            for future in queue:
                if not future.done():
                    future.set_exception(Refused("draining", "the server is shutting down"))
        self._waiting.clear()
        self._free = -1_000_000  # whoever leaves makes no place

    async def _enter(self, client: str) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if self.waiting >= self._room:
            raise _overloaded(f"all places are taken and {self.waiting} requests wait")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(client, deque())
        queue.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._leave()  # the place came at the same moment
            elif future in queue:
                queue.remove(future)
            raise

    def _leave(self) -> None:
        for client in sorted(self._waiting, key=lambda name: self._inside[name]):
            queue = self._waiting[client]
            while queue:
                future = queue.popleft()
                if not future.done():
                    future.set_result(None)  # the place changes hands
                    return
            del self._waiting[client]
        self._free += 1


def _overloaded(why: str) -> Refused:
    return Refused("overloaded", f"{why}; try again later", retry_after_s=RETRY_AFTER_S)

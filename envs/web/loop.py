"""The one thread with an event loop that all browsers and sites of a process share."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread of its own; callers on other threads wait for its answers."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="envs.web loop", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run on the loop; the result arrives in the future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and wait for the result."""
        return self.start(coroutine).result()


_lock = threading.Lock()
_shared: LoopThread | None = None


def shared() -> LoopThread:
    """The loop thread of this process; a forked child gets one of its own."""
    global _shared
    with _lock:
        if _shared is None or _shared.pid != os.getpid():
            _shared = LoopThread()
        return _shared

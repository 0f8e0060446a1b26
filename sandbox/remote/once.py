"""Request ids: whatever changes something is done once, however often it is asked for.

A client numbers its requests. The first with a number starts the work; the same number again waits for it, or gets
what came of it. Results are kept for a while and up to a size; a number at or below one that was dropped is refused
as lost, so that nothing can run twice after its result is forgotten.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from sandbox.remote.refusals import Refused


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: a status and the pieces of a frame."""

    status: int
    pieces: list[bytes]
    retry_after_s: int = 0
    started_nothing: bool = False
    room: int = 0
    """Bytes of the server's buffers that it occupies until it was sent."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(map(len, self.pieces))


Work = Callable[[], Coroutine[Any, Any, Answer]]


@dataclass(slots=True)
class _Entry:
    digest: bytes
    task: asyncio.Task[Answer]
    ended: float | None = field(default=None)


class Results:
    """The numbered requests of one lease; used from one event loop."""

    def __init__(self, *, keep_s: float, keep_number: int, keep_bytes: int) -> None:
        self._keep_s, self._keep_number, self._keep_bytes = keep_s, keep_number, keep_bytes
        self._entries: dict[int, _Entry] = {}
        self._ended: dict[int, int] = {}  # number -> size, in the order they ended
        self._bytes = 0
        self._floor = 0

    def knows(self, number: int) -> bool:
        """Whether the request came before."""
        return number in self._entries

    def start(self, number: int, digest: bytes, work: Work) -> asyncio.Task[Answer]:
        """The task that does the work: a new one, or that of the first request with this number.

        Raises:
            Refused: `conflict` if the first was another request, `lost` if its result was dropped.
        """
        self._drop_old()
        entry = self._entries.get(number)
        if entry is not None:
            if entry.digest != digest:
                raise Refused("conflict", f"request {number} came before with another body; number it anew")
            return entry.task
        if number <= self._floor:
            raise _forgotten(number)
        task = asyncio.get_running_loop().create_task(work())
        self._entries[number] = _Entry(digest, task)
        task.add_done_callback(lambda task: self._note(number, task))
        return task

    def task(self, number: int) -> asyncio.Task[Answer]:
        """The task of a request that came before.

        Raises:
            Refused: `lost`, if it never came or its result was dropped.
        """
        entry = self._entries.get(number)
        if entry is None:
            raise _forgotten(number)
        return entry.task

    def _note(self, number: int, task: asyncio.Task[Answer]) -> None:
        entry = self._entries[number]
        if task.cancelled() or task.result().started_nothing:
            del self._entries[number]  # it may come again
            return
        entry.ended = time.monotonic()
        self._ended[number] = task.result().size
        self._bytes += self._ended[number]
        self._drop_old()

    def _drop_old(self) -> None:
        horizon = time.monotonic() - self._keep_s
        while self._ended:
            number = next(iter(self._ended))
            ended = self._entries[number].ended
            full = len(self._ended) > self._keep_number or self._bytes > self._keep_bytes
            only = len(self._ended) == 1
            if not ((full and not only) or (ended is not None and ended < horizon)):
                return
            self._bytes -= self._ended.pop(number)
            del self._entries[number]
            self._floor = max(self._floor, number)


def _forgotten(number: int) -> Refused:
    return Refused(
        "lost", f"the result of request {number} is not known here (any more); it is not run again"
    )

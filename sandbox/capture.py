"""Keeping the head and the tail of a stream in bounded memory."""

from __future__ import annotations

from sandbox.types import Output


class HeadTail:
    """Takes any number of bytes and keeps the first and the last `limit // 2` of them."""

    def __init__(self, limit: int) -> None:
        self._head_limit, self._tail_limit = limit - limit // 2, limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self.total_bytes = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total_bytes += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 4 * self._tail_limit + 65536:  # trimmed rarely: a deletion moves the rest
            self._trim()

    def output(self) -> Output:
        """What was kept."""
        self._trim()
        return Output(head=bytes(self._head), tail=bytes(self._tail), total_bytes=self.total_bytes)

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]

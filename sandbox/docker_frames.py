"""The daemon's framing of a program's streams: a kind, three zeros, a length, and as many bytes."""

from __future__ import annotations

_HEAD_BYTES = 8


class Frames:
    """Takes a stream in any pieces and passes on what its frames hold as it comes, so that nothing is kept."""

    def __init__(self) -> None:
        self._head = b""
        self._kind = self._left = 0

    def take(self, data: bytes) -> list[tuple[int, bytes]]:
        """What the next bytes of the stream hold, as kind (2 is standard error) and contents."""
        found: list[tuple[int, bytes]] = []
        at = 0
        while at < len(data):
            if self._left:
                part = data[at : at + self._left]
                at, self._left = at + len(part), self._left - len(part)
                found.append((self._kind, part))
                continue
            missing = _HEAD_BYTES - len(self._head)
            self._head += data[at : at + missing]
            at += missing
            if len(self._head) == _HEAD_BYTES:
                self._kind, self._left = self._head[0], int.from_bytes(self._head[4:], "big")
                self._head = b""
        return found

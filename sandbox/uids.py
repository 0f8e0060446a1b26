"""Unprivileged host user ids, one per family of sandboxes, claimed across all processes of the machine.

A claim is a byte-range lock at the id's offset in one file, so the kernel gives it back however the process ends. It
is a lock of the open file, not of the process: another part of the process that looks cannot drop it.
"""

from __future__ import annotations

import fcntl
import os
import random
import struct
import threading
from pathlib import Path

_PREFERRED, _WANTED, _LEAST = 1_900_000_000, 65536, 1024
FOLDER = Path("/run/agent-rl")


class Uids:
    """The range of ids that this process may hand out.

    Raises:
        OSError: the lock file cannot be made (`/run/agent-rl`), or no id is mapped into this user namespace.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self.first, self.count = _mapped_range()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(folder / "uids.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._held: set[int] = set()  # the lock is the open file's, so its own claims are kept apart here
        self._lock = threading.Lock()
        self._next = random.randrange(self.count)

    def claim(self) -> int:
        """An id that no other family on this machine uses now.

        Raises:
            OSError: all are in use.
        """
        with self._lock:
            for _ in range(self.count):
                self._next = (self._next + 1) % self.count
                if self._next in self._held:
                    continue
                if not self._set(fcntl.F_WRLCK, self._next):
                    continue
                self._held.add(self._next)
                return self.first + self._next
        raise OSError(f"all {self.count} sandbox user ids are in use; close some sandboxes")

    def release(self, uid: int) -> None:
        """Give an id back once none of its processes and files is left."""
        with self._lock:
            self._held.discard(uid - self.first)
            self._set(fcntl.F_UNLCK, uid - self.first)

    def hold(self, uid: int) -> bool:
        """Keep an id from being claimed by anybody until `close`; False when somebody has it, this process included.

        Ask a `Uids` that has claimed nothing itself.
        """
        return 0 <= uid - self.first < self.count and self._set(fcntl.F_WRLCK, uid - self.first)

    def close(self) -> None:
        """Give everything back."""
        os.close(self._fd)

    def _set(self, kind: int, at: int) -> bool:
        """Lock or unlock one byte; False when another open file holds it."""
        request = struct.pack("hhqqi4x", kind, os.SEEK_SET, at, 1, 0)
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, request)
        except OSError:
            return False
        return True


def _mapped_range() -> tuple[int, int]:
    maps = [_spans(f"/proc/self/{kind}_map") for kind in ("uid", "gid")]
    if all(
        any(first <= _PREFERRED and end >= _PREFERRED + _WANTED for first, end in spans) for spans in maps
    ):
        return _PREFERRED, _WANTED
    # A user namespace with fewer ids: take the upper half of what both maps share, away from real accounts.
    first = max(min(first for first, _ in spans) for spans in maps)
    end = min(max(end for _, end in spans) for spans in maps)
    if end - first < 2 * _LEAST:
        raise OSError(f"only {end - first} user ids are mapped here; at least {2 * _LEAST} are needed")
    return first + (end - first) // 2, min(_WANTED, (end - first) // 2)


def _spans(path: str) -> list[tuple[int, int]]:
    rows = [[int(field) for field in line.split()] for line in Path(path).read_text().splitlines()]
    return [(inside, inside + count) for inside, _, count in rows]

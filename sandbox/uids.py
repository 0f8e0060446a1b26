"""Unprivileged host user ids, one per family of sandboxes, claimed across all processes of the machine.

A claim is a byte-range lock at the id's offset in one file, so the kernel gives it back however the process ends.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
from pathlib import Path

_PREFERRED, _WANTED, _LEAST = 1_900_000_000, 65536, 1024


class Uids:
    """The range of ids that this process may hand out.

    Raises:
        OSError: the lock file cannot be made (`/run/agent-rl`), or no id is mapped into this user namespace.
    """

    def __init__(self, folder: Path = Path("/run/agent-rl")) -> None:
        self.first, self.count = _mapped_range()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(folder / "uids.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._held: set[int] = set()  # the lock is the process's, so its own claims are kept apart here
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
                try:
                    fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._next)
                except OSError:
                    continue
                self._held.add(self._next)
                return self.first + self._next
        raise OSError(f"all {self.count} sandbox user ids are in use; close some sandboxes")

    def release(self, uid: int) -> None:
        """Give an id back once none of its processes and files is left."""
        with self._lock:
            self._held.discard(uid - self.first)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, uid - self.first)

    def close(self) -> None:
        """Give everything back."""
        os.close(self._fd)


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

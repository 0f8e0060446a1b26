"""What a sandbox shares with its forks: one host user id, because ownership decides which files can be changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.layers import Layer
from sandbox.machine import Machine

_SLACK = 64


class Family:
    """A host user id and the count of those who use it.

    `uid` is None where sandboxes run as this process's own user.

    Raises:
        OSError: no id is free.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine, self._members, self._lock = machine, 1, threading.Lock()
        self.uid = machine.uids.claim() if machine.uids else None
        if self.uid is not None:
            machine.ledger.record("uid", str(self.uid))

    def acquire(self) -> Family:
        """Count one more member."""
        with self._lock:
            self._members += 1
        return self

    def release(self) -> None:
        """Count one member less; the last one gives the id back."""
        with self._lock:
            self._members -= 1
            last = self._members == 0
        if last:
            self._end()

    def _end(self) -> None:
        if self.uid is not None and self._machine.uids:
            self._machine.uids.release(self.uid)

    def owns_process(self) -> bool:
        """False in a forked child of the harness, which must leave everything alone."""
        return self._machine.pid == os.getpid()

    def process_bound(self, processes: int) -> int:
        """RLIMIT_NPROC for want of a pids group: it counts all processes of the user, so it bounds only roughly."""
        if self.uid is not None:
            return self._members * (processes + 2)
        return _tasks_of(os.geteuid()) + processes + _SLACK

    def at_process_bound(self, processes: int) -> bool:
        """Whether this family's user has so many processes that RLIMIT_NPROC refuses more."""
        return self.uid is not None and _tasks_of(self.uid) + 2 >= self.process_bound(processes)


class Snapshot:
    """See `sandbox.base.SandboxSnapshot`; it may outlive the sandbox that it was taken of."""

    def __init__(self, family: Family, layers: tuple[Layer, ...]) -> None:
        """Take over one use of each layer."""
        self.family, self._layers, self._lock = family.acquire(), layers, threading.Lock()
        self._released = False

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The frozen layers, nearest first.

        Raises:
            SandboxError: it was released.
        """
        if self._released:
            raise SandboxError("the snapshot was released; take another")
        return self._layers

    @property
    def held_bytes(self) -> int:
        """Its share of the memory or disk of its layers: the shares of all who use a layer add up to what it takes."""
        return 0 if self._released else sum(layer.share_bytes() for layer in self._layers)

    def release(self) -> None:
        """Give back its memory or disk; safe to call twice."""
        with self._lock:
            released, self._released = self._released, True
        if not released and self.family.owns_process():
            for layer in self._layers:
                layer.release()
            self.family.release()


def _tasks_of(uid: int) -> int:
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == uid:
                    count += len(os.listdir(entry / "task"))
            except OSError:
                continue
    return count

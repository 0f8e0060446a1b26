"""The sandboxes of one episode: opened under one lock, shut from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import sandbox as sandboxes
from sandbox.base import Sandbox
from sandbox.errors import SandboxClosed
from sandbox.types import SandboxSpec

Result = TypeVar("Result")


class Places:
    """What an episode has open. Once `stop` was called, or `cut` says so, whatever opens is closed at once."""

    def __init__(self, backend: str, cut: Callable[[], bool] = lambda: False) -> None:
        self.backend, self._cut = backend, cut
        self._open: list[Sandbox] = []
        self._lock = threading.Lock()
        self._standing = True

    def open(self, spec: SandboxSpec) -> Sandbox:
        """Start a sandbox of this episode."""
        return self.keep(sandboxes.create(spec, backend=self.backend))

    def keep(self, opened: Sandbox) -> Sandbox:
        """Note a sandbox for closing."""
        with self._lock:
            self._open.append(opened)
            standing = self._standing
        if not standing or self._cut():
            opened.close()
        return opened

    def shut(self) -> None:
        """Close every sandbox; the episode may open others."""
        with self._lock:
            shut, self._open = self._open, []
        for opened in shut:
            opened.close()

    def stop(self) -> None:
        """Close every sandbox, for good; from any thread."""
        with self._lock:
            self._standing = False
        self.shut()

    def live(self, result: Result) -> Result:
        """A result, unless it was cut short from outside: then what looks like the program's doing is ours.

        Raises:
            SandboxClosed: the episode was interrupted or closed; leaves as a fault.
        """
        if not self._standing or self._cut():
            raise SandboxClosed("the episode was interrupted while a program ran")
        return result

"""Where an environment stands in its life, and who may move it: the one piece that several threads touch.

    new ── reset ──> dead ──> live ── step ──> dead ──> live | over
    any ── close ──> closed

It is `dead` while environment code runs, and stays so when that code fails: a half-played turn is never
stepped on.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Literal

from envs.errors import EpisodeOverError, NotRunningError, fault_boundary
from envs.types import Fault, FaultError, FaultStage

Phase = Literal["new", "dead", "live", "over", "closed"]

_WHY: dict[Phase, str] = {
    "new": "it was never reset: call reset first",
    "dead": "a fault stopped its episode: call reset, or close it and make a new one",
    "over": "its episode has ended: call reset first",
    "closed": "it was closed: make a new one",
}


class Lifecycle:
    """Phase of one environment. `interrupt` and `close` may come from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.phase: Phase = "new"
        self._lock = threading.Lock()
        self._interrupted = threading.Event()
        self._world_stands = False

    def require_open(self) -> None:
        """Refuse to go on after `close`."""
        if self.phase == "closed":
            raise NotRunningError(f"{self.name} cannot be reset, {_WHY['closed']}")

    def require_live(self, what: str) -> None:
        """Refuse to `what` unless an episode is running.

        Raises:
            EpisodeOverError: the episode has ended.
            NotRunningError: there is none.
            FaultError: the environment was interrupted.
        """
        if self.phase == "over":
            raise EpisodeOverError(f"{self.name} cannot {what}, {_WHY['over']}")
        if self.phase != "live":
            raise NotRunningError(f"{self.name} cannot {what}, {_WHY[self.phase]}")
        if self._interrupted.is_set():
            detail = f"{self.name} was interrupted: close it and make a new one"
            raise FaultError(Fault(kind="deadline", stage="step", detail=detail))

    def begin_world(self) -> None:
        """Note that a world is being built and will have to be taken down."""
        with self._lock:
            self.require_open()  # a world built after `close` would stand for ever
            self._interrupted.clear()
            self._world_stands = True
            self.phase = "dead"

    def take_world(self) -> bool:
        """Whether there is a world to take down; only one caller is told so."""
        with self._lock:
            standing, self._world_stands = self._world_stands, False
        return standing

    def enter(self) -> None:
        """Environment code starts to run."""
        self._move("dead")

    def settle(self, phase: Literal["live", "over"]) -> None:
        """Environment code returned; a `close` meanwhile wins."""
        self._move(phase)

    def _move(self, phase: Phase) -> None:
        with self._lock:
            if self.phase != "closed":
                self.phase = phase

    def interrupt(self) -> None:
        """Whatever fails from now on, failed because of this."""
        self._interrupted.set()

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called since the world began."""
        return self._interrupted.is_set()

    def close(self) -> None:
        """The last phase."""
        with self._lock:
            self.phase = "closed"

    def boundary(self, stage: FaultStage) -> AbstractContextManager[None]:
        """Run environment code: its exceptions leave as faults, as `deadline` once it was interrupted."""
        return fault_boundary(stage, self._interrupted.is_set)

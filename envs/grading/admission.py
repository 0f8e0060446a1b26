"""How many graders run at once in this process, and what a wall-clock timeout means.

On a crowded machine a right answer can outlast a wall-clock limit. Graders therefore limit processor seconds,
are admitted up to the number of cores, and a verdict that a wall-clock limit made is made once more with no
other grader running; the second verdict stands.

Nobody waits longer than `PATIENCE_S` for a place: a queue of sleeping submissions would otherwise carry others
past the harness's deadline for a step, and that is a fault. A grader whose own wall-clock limit is at most 20 s
thus ends within a minute.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Verdict = TypeVar("Verdict")


PATIENCE_S = 5.0


class Gate:
    """Admits `bound` at a time, or one alone; who wants to be alone is not overtaken by newcomers.

    Whoever has waited for `patience_s` goes in all the same.
    """

    def __init__(self, bound: int, patience_s: float = PATIENCE_S) -> None:
        if bound < 1:
            raise ValueError(f"at least one grader is admitted, got {bound}")
        self._bound, self._patience_s = bound, patience_s
        self._changed = threading.Condition()
        self._inside = 0
        self._wanting = 0

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Wait for a place and hold it."""
        with self._changed:
            self._changed.wait_for(lambda: self._inside < self._bound and not self._wanting, self._patience_s)
            self._inside += 1
        try:
            yield
        finally:
            self._leave(1)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other is inside, and keep all others out."""
        with self._changed:
            self._wanting += 1
            try:
                self._changed.wait_for(lambda: self._inside == 0, self._patience_s)
                self._inside += self._bound
            finally:
                self._wanting -= 1
        try:
            yield
        finally:
            self._leave(self._bound)

    def _leave(self, places: int) -> None:
        with self._changed:
            self._inside -= places
            self._changed.notify_all()


_GATE = Gate(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@contextmanager
def admitted() -> Iterator[None]:
    """Hold one of this process's places for graders, of which there are as many as cores."""
    with _GATE.admitted():
        yield


def judged(run: Callable[[], Verdict], *, timed_out: Callable[[Verdict], bool]) -> Verdict:
    """A verdict of `run`, made in a place for graders; one that a wall-clock limit made is made again alone.

    `run` must start from a fresh place each time.
    """
    with _GATE.admitted():
        verdict = run()
    if not timed_out(verdict):
        return verdict
    with _GATE.alone():
        return run()

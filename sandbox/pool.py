"""Sandboxes handed out ready-made, at a bounded number and rate, fairly among those who ask.

A sandbox is used once: what comes back is closed, and a fresh one takes its place on the shelf.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import sandbox
from sandbox.admission import Admission, Ticket
from sandbox.base import Sandbox
from sandbox.errors import SandboxClosed, SandboxError, SandboxUnavailable
from sandbox.types import SandboxSpec

_RETRY_S = 1.0


class Lease:
    """One sandbox in use. Leaving it, or `close`, closes the sandbox.

    Attributes:
        sandbox: The sandbox; nobody else has it or had it.
        queue_s: Seconds from the request to the hand-over: waiting for a place and, without a spare, the start.
    """

    def __init__(self, pool: Pool, made: Sandbox, ticket: Ticket, queue_s: float) -> None:
        self.sandbox, self.queue_s = made, queue_s
        self._pool, self._ticket = pool, ticket
        self._started, self._run_s = time.monotonic(), -1.0
        self._lock = threading.Lock()

    @property
    def run_s(self) -> float:
        """Seconds of use so far, or in all once it is closed."""
        return self._run_s if self._run_s >= 0 else time.monotonic() - self._started

    def close(self) -> None:
        """Close the sandbox and free its place; safe to call twice."""
        with self._lock:
            if self._run_s >= 0:
                return
            self._run_s = time.monotonic() - self._started
        try:
            self.sandbox.close()
        finally:
            self._pool._leave(self, self._ticket)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class _Shelf:
    """Spares of one spec."""

    spec: SandboxSpec
    wanted: int
    spares: deque[Sandbox] = field(default_factory=deque)


class Pool:
    """Hands out sandboxes of any backend.

    Args:
        backend: As for `sandbox.create`.
        max_sandboxes: Most that exist at once, spares included.
        starts_per_s: Most that are started per second.

    Raises:
        ValueError: a bound is not positive.
    """

    def __init__(
        self, backend: str = "bubblewrap", *, max_sandboxes: int = 64, starts_per_s: float = 200.0
    ) -> None:
        if max_sandboxes < 1 or not starts_per_s > 0:
            raise ValueError(
                f"max_sandboxes ({max_sandboxes}) and starts_per_s ({starts_per_s}) must be positive"
            )
        self._backend, self._interval_s = backend, 1.0 / starts_per_s
        self._admission = Admission(max_sandboxes)
        self._changed = threading.Condition()
        self._shelves: list[_Shelf] = []
        self._leases: set[Lease] = set()
        self._next_start, self._filling, self._closed = 0.0, 0, False
        self._filler = threading.Thread(target=self._fill, name="sandbox-pool", daemon=True)
        self._filler.start()

    def warm(self, spec: SandboxSpec, count: int) -> None:
        """Keep `count` spares of a spec ready, as far as the bound leaves room: who waits comes before spares."""
        with self._changed:
            shelf = self._shelf(spec)
            if shelf is None:
                shelf = _Shelf(spec, count)
                self._shelves.append(shelf)
            shelf.wanted = count
            extra = [shelf.spares.popleft() for _ in range(len(shelf.spares) - count)]
            self._changed.notify_all()
        _close_all(extra)

    def acquire(
        self, spec: SandboxSpec = SandboxSpec(), *, key: str = "", timeout_s: float | None = None
    ) -> Lease:
        """A sandbox that nobody used; waits for a place. `key` names who asks, for fairness.

        Raises:
            TimeoutError: no place became free in time.
            SandboxClosed: the pool was closed.
            SandboxError: as `sandbox.create`.
        """
        asked = time.monotonic()
        ticket = self._enter(key, timeout_s)
        made: Sandbox | None = None
        try:
            made = self._spare(spec) or self._start(spec)
            lease = Lease(self, made, ticket, time.monotonic() - asked)
            with self._changed:
                if self._closed:
                    raise SandboxClosed("the pool was closed; make another")
                self._leases.add(lease)
        except BaseException:
            if made is not None:
                made.close()
            self._leave(None, ticket)
            raise
        return lease

    def spares(self) -> int:
        """Sandboxes ready now."""
        with self._changed:
            return sum(len(shelf.spares) for shelf in self._shelves)

    def close(self) -> None:
        """Close every sandbox, those in use too; who waits gets `SandboxClosed`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._filler.join()
        with self._changed:
            made = [one for shelf in self._shelves for one in shelf.spares]
            leases, self._shelves = list(self._leases), []
        for lease in leases:
            lease.close()
        _close_all(made)
        with self._changed:  # those that were being started close themselves
            self._changed.wait_for(lambda: not self._admission.inside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _enter(self, key: str, timeout_s: float | None) -> Ticket:
        with self._changed:
            ticket = self._admission.enter(key)
            self._admit()
            self._changed.wait_for(lambda: ticket.admitted or self._closed, timeout_s)
            if ticket.admitted and not self._closed:
                return ticket
            self._admission.leave(ticket)
            self._admit()
            if self._closed:
                raise SandboxClosed("the pool was closed; make another")
            raise TimeoutError(
                f"no sandbox became free in {timeout_s} s: {self._admission.inside.total()} of "
                f"{self._admission.bound} are in use and {self._admission.waiting} requests wait"
            )

    def _leave(self, lease: Lease | None, ticket: Ticket) -> None:
        with self._changed:
            if lease is not None:
                self._leases.discard(lease)
            self._admission.leave(ticket)
            self._admit()

    def _admit(self) -> None:
        self._admission.admit()
        self._changed.notify_all()

    def _shelf(self, spec: SandboxSpec) -> _Shelf | None:
        return next((shelf for shelf in self._shelves if shelf.spec == spec), None)

    def _spare(self, spec: SandboxSpec) -> Sandbox | None:
        """A spare of this spec; failing that, another spec's spare makes room when the bound is reached."""
        with self._changed:
            shelf = self._shelf(spec)
            if shelf is not None and shelf.spares:
                self._changed.notify_all()
                return shelf.spares.popleft()
            self._changed.wait_for(lambda: not (self._filling and self._excess() > 0))
            stocked = max(self._shelves, key=lambda shelf: len(shelf.spares), default=None)
            surplus = stocked.spares.popleft() if stocked and stocked.spares and self._excess() > 0 else None
        if surplus is not None:
            surplus.close()
        return None

    def _excess(self) -> int:
        """By how many places, spares and the one being made are more than the bound."""
        kept = self._filling + sum(len(shelf.spares) for shelf in self._shelves)
        return self._admission.inside.total() + kept - self._admission.bound

    def _start(self, spec: SandboxSpec) -> Sandbox:
        """Wait for the next moment at which one may be started, and start it."""
        with self._changed:
            at = self._next_start = max(time.monotonic(), self._next_start + self._interval_s)
        time.sleep(max(0.0, at - time.monotonic()))
        return sandbox.create(spec, self._backend)

    def _lacking(self) -> _Shelf | None:
        """A shelf to fill, if there is room for a spare and nobody waits for it."""
        if self._admission.waiting or self._excess() >= 0:
            return None
        lacking = [shelf for shelf in self._shelves if len(shelf.spares) < shelf.wanted]
        return min(lacking, key=lambda shelf: len(shelf.spares) / shelf.wanted, default=None)

    def _fill(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._lacking() is not None)
                shelf = self._lacking()
                if self._closed or shelf is None:
                    return
                self._filling = 1
            made: Sandbox | None = None
            try:
                made = self._start(shelf.spec)
            except (SandboxUnavailable, ValueError):
                shelf.wanted = 0  # it will not become possible; who asks is told why
            except (SandboxError, OSError):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, _RETRY_S)
            with self._changed:
                self._filling = 0
                if made is not None:
                    shelf.spares.append(made)
                self._changed.notify_all()


def _close_all(sandboxes: list[Sandbox]) -> None:
    for one in sandboxes:
        one.close()

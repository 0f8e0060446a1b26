"""Who comes next when the number of sandboxes is bounded: pure bookkeeping, without threads and clocks."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Ticket:
    """One request."""

    key: str
    admitted: bool = False


class Admission:
    """Admits requests up to a bound.

    Next is always the key that has the fewest admitted; among equals the one that was admitted longest ago; within a
    key the one that came first. A key that floods the queue thus cannot hold up another.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.inside: Counter[str] = Counter()
        """Admitted and not left, by key."""
        self._waiting: dict[str, deque[Ticket]] = {}
        self._turn: dict[str, int] = {}
        self._turns = 0

    @property
    def waiting(self) -> int:
        """Requests not yet admitted."""
        return sum(len(line) for line in self._waiting.values())

    def enter(self, key: str) -> Ticket:
        """Ask; `admit` answers."""
        ticket = Ticket(key)
        self._waiting.setdefault(key, deque()).append(ticket)
        return ticket

    def admit(self) -> list[Ticket]:
        """Admit as many as the bound allows, in order."""
        admitted: list[Ticket] = []
        while self._waiting and self.inside.total() < self.bound:
            key = min(self._waiting, key=lambda key: (self.inside[key], self._turn.get(key, -1)))
            ticket = self._waiting[key].popleft()
            if not self._waiting[key]:
                del self._waiting[key]
            self.inside[key] += 1
            self._turns += 1
            self._turn[key] = self._turns
            ticket.admitted = True
            admitted.append(ticket)
        return admitted

    def leave(self, ticket: Ticket) -> None:
        """Give up: an admitted place becomes free, a waiting request is withdrawn."""
        key = ticket.key
        if not ticket.admitted:
            self._waiting[key].remove(ticket)
            if not self._waiting[key]:
                del self._waiting[key]
            return
        ticket.admitted = False
        self.inside[key] -= 1
        if not self.inside[key]:
            del self.inside[key]
            if key not in self._waiting:
                self._turn.pop(key, None)

"""What clients hold on a server: leases with their live environments and snapshots; used from one event loop."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from envs.base import Env
from envs.types import Snapshot
from sandbox.admission import Ticket
from sandbox.remote.once import Results
from sandbox.remote.refusals import Refused
from sandbox.remote.settings import Settings


@dataclass(slots=True, eq=False)
class Session:
    """One live environment of a lease, and the place that it occupies."""

    env: Env
    ticket: Ticket
    dead: bool = False
    """It outlasted its deadline, or was ended by the server: nothing of it may be used."""


@dataclass(slots=True, eq=False)
class Lease:
    """What one process of a client holds, until it is silent for too long."""

    id: str
    client: str
    results: Results
    expires: float
    alive: bool = True
    sessions: dict[str, Session] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)


class Leases:
    """All leases, and how many each client has."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._leases: dict[str, Lease] = {}
        self._held: Counter[str] = Counter()

    def open(self, client: str) -> Lease:
        """A new lease.

        Raises:
            Refused: `quota`.
        """
        settings = self._settings
        if self._held[client] >= settings.max_leases:
            raise Refused("quota", f"this client has {settings.max_leases} processes here; end some first")
        results = Results(
            keep_s=settings.keep_s, keep_number=settings.keep_number, keep_bytes=settings.keep_bytes
        )
        lease = Lease(new_id(), client, results, time.monotonic() + settings.lease_s)
        self._leases[lease.id] = lease
        self._held[client] += 1
        return lease

    def find(self, id: str, client: str) -> Lease:
        """A lease of this client, renewed.

        Raises:
            Refused: `lease`, if there is none (any more): it ran out, or the server was restarted.
        """
        lease = self._leases.get(id)
        if lease is None or lease.client != client:
            raise Refused(
                "lease", "this lease is not known: it ran out, or the server was restarted meanwhile"
            )
        lease.expires = time.monotonic() + self._settings.lease_s
        return lease

    def end(self, lease: Lease) -> None:
        """Forget a lease; what it holds is the caller's to close."""
        if self._leases.pop(lease.id, None) is not None:
            lease.alive = False
            self._held -= Counter((lease.client,))

    def expired(self) -> list[Lease]:
        """Leases whose time has come."""
        now = time.monotonic()
        return [lease for lease in self._leases.values() if lease.expires < now]

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._leases.values()))


def new_id() -> str:
    """A name that cannot be guessed."""
    return secrets.token_hex(16)

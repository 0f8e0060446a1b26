"""Who holds what: leases with their sandboxes, shells and snapshots, and what each client holds in all."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sandbox.base import Sandbox, SandboxSnapshot, Shell
from sandbox.remote.once import Results
from sandbox.remote.refusals import Refused
from sandbox.remote.settings import Settings

Kind = Literal["sandbox", "snapshot", "shell", "lease"]


@dataclass(slots=True, eq=False)
class HeldSandbox:
    """A sandbox of a lease. `bytes` is its workspace limit; `taken` says that the server, not its client, ends it."""

    sandbox: Sandbox
    bytes: int
    taken: bool = False


@dataclass(slots=True, eq=False)
class HeldShell:
    """A shell and where it lives."""

    shell: Shell
    home: HeldSandbox


@dataclass(slots=True, eq=False)
class HeldSnapshot:
    """A snapshot, and how much of the quota it takes."""

    snapshot: SandboxSnapshot
    bytes: int


@dataclass(slots=True, eq=False)
class Lease:
    """What one process of a client holds, until it is silent for too long."""

    id: str
    client: str
    results: Results
    expires: float
    alive: bool = True
    sandboxes: dict[str, HeldSandbox] = field(default_factory=dict)
    shells: dict[str, HeldShell] = field(default_factory=dict)
    snapshots: dict[str, HeldSnapshot] = field(default_factory=dict)


class Quota:
    """What each client holds, against its maximum."""

    def __init__(self, settings: Settings) -> None:
        self._most: dict[Kind, int] = {
            "sandbox": settings.max_sandboxes,
            "snapshot": settings.max_snapshots,
            "shell": settings.max_shells,
            "lease": settings.max_leases,
        }
        self._most_bytes = settings.max_bytes
        self._held: Counter[tuple[str, Kind]] = Counter()
        self._bytes: Counter[str] = Counter()

    def take(self, client: str, kind: Kind, size: int = 0) -> None:
        """Count one more.

        Raises:
            Refused: `quota`.
        """
        if self._held[client, kind] >= self._most[kind]:
            raise Refused("quota", f"this client holds {self._most[kind]} of: {kind}; close some first")
        if self._bytes[client] + size > self._most_bytes:
            raise Refused(
                "quota",
                f"{size} bytes of workspace would exceed this client's {self._most_bytes}; close sandboxes, release "
                "snapshots, or ask for smaller workspaces",
            )
        self._held[client, kind] += 1
        self._bytes[client] += size

    def give(self, client: str, kind: Kind, size: int = 0) -> None:
        """Count one less."""
        self._held -= Counter({(client, kind): 1})
        self._bytes -= Counter({client: size})


class Leases:
    """All leases; used from one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.quota = Quota(settings)
        self._leases: dict[str, Lease] = {}

    def open(self, client: str) -> Lease:
        """A new lease.

        Raises:
            Refused: `quota`.
        """
        self.quota.take(client, "lease")
        settings = self._settings
        results = Results(
            keep_s=settings.keep_s, keep_number=settings.keep_number, keep_bytes=settings.keep_bytes
        )
        lease = Lease(new_id(), client, results, time.monotonic() + settings.lease_s)
        self._leases[lease.id] = lease
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
        """Forget a lease; its sandboxes are the caller's to close."""
        if self._leases.pop(lease.id, None) is not None:
            lease.alive = False
            for held in lease.sandboxes.values():
                held.taken = True
            self.quota.give(lease.client, "lease")

    def expired(self) -> list[Lease]:
        """Leases whose time has come."""
        now = time.monotonic()
        return [lease for lease in self._leases.values() if lease.expires < now]

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._leases.values()))


def new_id() -> str:
    """A name that cannot be guessed."""
    return secrets.token_hex(16)

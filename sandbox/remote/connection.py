"""A client process's tie to one server: its lease, kept alive, and requests that survive lost connections.

A request keeps its number over all its tries, so the server does it once. When nothing was heard for `retry_s`, or
the server does not know the lease any more, that is the evidence from outside for `SandboxLost`.
"""

from __future__ import annotations

import atexit
import itertools
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sandbox.errors import SandboxLost, SandboxUnavailable
from sandbox.remote import tokens, wire
from sandbox.remote.refusals import error_of
from sandbox.remote.transport import Reply, Silence, Transport, Trouble
from sandbox.types import CapabilityReport

if TYPE_CHECKING:
    from sandbox.remote.websocket import SocketTransport

RETRY_S = 30.0
"""How long a server may be silent."""
BUSY_S = 600.0
"""How long a server may have no free place."""
_OK, _STILL_RUNNING = 200, 202
_HEAD_SLACK = wire.MAX_HEAD_BYTES + 4
_READ_SLACK_S = 30.0
_LAST_WORDS_S = 2.0
_RENEW_S = 2.0
_TURN_S = 0.01
_Kind = TypeVar("_Kind", bound=wire.Head)


@dataclass(slots=True, eq=False)
class Lease:
    """What the server calls this process, and what it said when the lease began."""

    head: wire.LeaseHead
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    pid: int = field(default_factory=os.getpid)
    lost: bool = False

    @property
    def report(self) -> CapabilityReport:
        """What the server's backend enforces."""
        return report_of(self.head)


class LeaseGone(SandboxLost):
    """The server does not know the lease: it ran out, or the server was restarted."""


def _transport(address: str, token: str | None) -> Transport | SocketTransport:
    if address.startswith(("ws://", "wss://")):
        from sandbox.remote.websocket import SocketTransport

        return SocketTransport(address, token)
    return Transport(address, token)


class Connection:
    """A server, and this process's lease there; used from any thread."""

    def __init__(
        self, address: str, token: str | None, *, retry_s: float = RETRY_S, busy_s: float = BUSY_S
    ) -> None:
        self.address, self._retry_s, self._busy_s = address, retry_s, busy_s
        self._transport = _transport(address, token)
        self._lease: Lease | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._heart: threading.Thread | None = None

    def report(self) -> CapabilityReport:
        """What the server's backend enforces.

        Raises:
            SandboxError: it cannot be reached, or refuses.
        """
        reply = self._patiently(lambda: self._exchange("GET", "/v1/server", {}), self._retry_s)
        return report_of(self._understood(wire.ReportHead, self._good(reply, new=True)))

    def lease(self) -> Lease:
        """The lease of this process, opened when there is none.

        Raises:
            SandboxError: the server cannot be reached, or refuses.
        """
        with self._lock:
            if self._lease is None or self._lease.lost:
                reply = self._patiently(lambda: self._exchange("POST", "/v1/leases", {}), self._retry_s)
                self._lease = Lease(self._understood(wire.LeaseHead, self._good(reply, new=True)))
                if self._heart is None:
                    self._heart = threading.Thread(target=self._beat, name="sandbox-lease", daemon=True)
                    self._heart.start()
            return self._lease

    def numbered(
        self, lease: Lease, path: str, pieces: list[bytes], *, most: int = 0, new: bool = False
    ) -> tuple[bytearray, float]:
        """Have something done once; also gives the seconds spent waiting because the server was full.

        `most`: bytes that the reply may have beyond its head. `new`: it concerns no sandbox that exists already.

        Raises:
            SandboxLost: the server is silent or forgot the sandbox.
            Exception: what the server refused, see `refusals`.
        """
        number, uncertain, started, waited = next(lease.numbers), False, False, 0.0
        silence = Silence(self._retry_s, self.address)
        # The longest program, after the longest wait; a server that is sound has answered by then.
        patience_s = self._busy_s + lease.head.max_timeout_s + self._retry_s
        give_up = time.monotonic() + patience_s
        while True:
            if time.monotonic() > give_up:
                raise SandboxLost(f"the server {self.address} has no result after {patience_s:.0f} s")
            headers = {wire.LEASE_HEADER: lease.head.lease, wire.REQUEST_HEADER: str(number)}
            try:
                if started:
                    reply = self._exchange("GET", f"/v1/results/{number}", headers, most=most)
                else:
                    reply = self._exchange("POST", path, headers, pieces, most=most)
            except Trouble as trouble:
                uncertain = True
                silence.bear(trouble)
                continue
            silence.end()
            if reply.status == _STILL_RUNNING:
                started = True
                time.sleep(_TURN_S)
            elif reply.status == 429 and waited < self._busy_s:
                pause = reply.retry_after_s * random.uniform(0.5, 1.0)
                time.sleep(pause)
                waited += pause
                if not uncertain:  # the server dropped this number, and later ones may have passed it
                    number = next(lease.numbers)
            else:
                return self._good(reply, lease, new=new), waited

    def look(self, lease: Lease, path: str, pieces: list[bytes], *, most: int) -> bytearray:
        """Ask for something that may be asked for twice.

        Raises:
            As `numbered`.
        """
        headers = {wire.LEASE_HEADER: lease.head.lease}
        timeout_s = lease.head.max_timeout_s + _READ_SLACK_S  # it may have to wait for a program to end
        give_up = time.monotonic() + self._busy_s
        while True:
            reply = self._patiently(
                lambda: self._exchange("POST", path, headers, pieces, most=most, timeout_s=timeout_s),
                self._retry_s,
            )
            if reply.status != 429 or time.monotonic() > give_up:
                return self._good(reply, lease)
            time.sleep(reply.retry_after_s * random.uniform(0.5, 1.0))

    def end(self, lease: Lease, path: str) -> None:
        """Close something of a lease. A server that is silent or forgot the lease closes it, or did, by itself."""
        if lease.lost or lease.pid != os.getpid():
            return
        headers = {wire.LEASE_HEADER: lease.head.lease}
        try:
            self._good(self._patiently(lambda: self._exchange("DELETE", path, headers), self._retry_s), lease)
        except SandboxLost:
            return

    def close(self) -> None:
        """Give the lease back, and with it all that it holds."""
        self._stop.set()
        lease, self._lease = self._lease, None
        if lease is not None and not lease.lost and lease.pid == os.getpid():
            headers = {wire.LEASE_HEADER: lease.head.lease}
            try:
                self._exchange("DELETE", "/v1/leases", headers)
            except (Trouble, SandboxLost):
                lease.lost = True  # it runs out by itself
        if self._heart is not None and self._heart is not threading.current_thread():
            self._heart.join(_LAST_WORDS_S)
        self._transport.close()

    def _beat(self) -> None:
        while True:
            lease = self._lease
            if self._stop.wait(1.0 if lease is None else min(20.0, lease.head.lease_s / 4)):
                return
            if lease is None or lease.lost:
                continue
            headers = {wire.LEASE_HEADER: lease.head.lease}
            try:
                self._good(self._exchange("POST", "/v1/leases/renew", headers, timeout_s=_RENEW_S), lease)
            except (Trouble, SandboxLost, SandboxUnavailable, RuntimeError):
                continue  # the next request finds out; RuntimeError: closed meanwhile

    def _exchange(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        pieces: list[bytes] | None = None,
        *,
        most: int = 0,
        timeout_s: float = wire.MAX_POLL_S + _READ_SLACK_S,
    ) -> Reply:
        body = wire.encode(wire.Head, {}) if pieces is None else pieces
        if method == "GET":
            body = []
        return self._transport.exchange(
            method, path, body, headers=headers, most=_HEAD_SLACK + most, timeout_s=timeout_s
        )

    def _patiently(self, exchange: Callable[[], Reply], budget_s: float) -> Reply:
        silence = Silence(budget_s, self.address)
        while True:
            try:
                return exchange()
            except Trouble as trouble:
                silence.bear(trouble)

    def _good(self, reply: Reply, lease: Lease | None = None, *, new: bool = False) -> bytearray:
        """The body of a reply that is no refusal."""
        if reply.status == _OK:
            return reply.body
        head = self._understood(wire.RefusalHead, reply.body)
        error = error_of(head.code, head.message)
        if head.code == "lease":
            if lease is not None:
                lease.lost = True
            raise LeaseGone(str(error))
        if head.code in ("draining", "overloaded") and not new:
            raise SandboxLost(str(error))
        raise error

    def _understood(self, kind: type[_Kind], body: bytearray) -> _Kind:
        return understood(kind, body)[0]


def understood(kind: type[_Kind], body: bytearray) -> tuple[_Kind, list[bytes]]:
    """A frame of the server.

    Raises:
        SandboxLost: it is none.
    """
    try:
        return wire.decode(kind, body)
    except wire.Malformed as error:
        raise SandboxLost(f"the server's answer is not of this protocol: {error}") from error


def report_of(head: wire.ReportHead) -> CapabilityReport:
    """What a server said that its backend enforces."""
    return CapabilityReport(
        backend=f"remote:{head.backend}", enforced=frozenset(head.enforced), missing=dict(head.missing)
    )


_connections: dict[tuple[int, str, str | None], Connection] = {}
_guard = threading.Lock()


def connect(address: str) -> Connection:
    """The connection of this process to a server; the token is read from where `tokens` says.

    Raises:
        ValueError: the token is none.
        OSError: its file cannot be read.
    """
    token = tokens.client_token()
    with _guard:
        key = (os.getpid(), address, token)
        if key not in _connections:
            if not _connections:
                atexit.register(disconnect)
            _connections[key] = Connection(address, token)
        return _connections[key]


def disconnect() -> None:
    """Give all leases of this process back; a later `connect` begins anew."""
    with _guard:
        mine = [key for key in _connections if key[0] == os.getpid()]
        found = [_connections.pop(key) for key in mine]
    for connection in found:
        connection.close()

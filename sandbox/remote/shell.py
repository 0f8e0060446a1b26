"""A stateful shell at a server."""

from __future__ import annotations

import os

from sandbox.errors import SandboxClosed, SandboxLost
from sandbox.remote import wire
from sandbox.remote.connection import Connection, Lease
from sandbox.types import ExecResult, Limits


class RemoteShell:
    """See `sandbox.base.Shell`."""

    def __init__(self, connection: Connection, lease: Lease, id: str, limits: Limits) -> None:
        self._connection, self._lease, self._id, self._limits = connection, lease, id, limits
        self._closed = False

    def run(self, command: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one command, once, whatever happens to the connection.

        Raises:
            SandboxClosed: the shell or its sandbox was closed.
            SandboxLost: the server is gone, was restarted, or ended the sandbox.
            ValueError: the command contains a NUL byte, or the deadline is above the server's maximum.
        """
        if self._closed:
            raise SandboxClosed("the shell was closed; open another")
        pieces = wire.encode(wire.RunHead, {"timeout_s": timeout_s}, (os.fsencode(command),))
        check_size(usable(self._lease), pieces, "the command", ValueError)
        return run(self._connection, self._lease, f"/v1/shells/{self._id}/run", pieces, self._limits)

    def close(self) -> None:
        """Kill the shell and all that it started."""
        closed, self._closed = self._closed, True
        if not closed:
            self._connection.end(self._lease, f"/v1/shells/{self._id}")


def run(connection: Connection, lease: Lease, path: str, pieces: list[bytes], limits: Limits) -> ExecResult:
    """Have a program or command run, and understand its result.

    Raises:
        As `Connection.numbered`.
    """
    body, waited_s = connection.numbered(lease, path, pieces, most=2 * limits.max_output_bytes + 4)
    try:
        return wire.result_of(body, waited_s)
    except wire.Malformed as error:
        raise SandboxLost(f"the server's answer is not of this protocol: {error}") from error


def usable(lease: Lease) -> Lease:
    """The lease, if this process may use it.

    Raises:
        SandboxClosed: another process holds it.
        SandboxLost: the server forgot it.
    """
    if lease.pid != os.getpid():
        raise SandboxClosed("the sandbox belongs to the process that made it; create another in this one")
    if lease.lost:
        raise SandboxLost("the lease ran out, or the server was restarted; what it held is gone")
    return lease


def check_size(lease: Lease, pieces: list[bytes], what: str, kind: type[Exception]) -> None:
    """Refuse here what the server would not take.

    Raises:
        Exception: of this kind, with the server's limit.
    """
    size, most = sum(map(len, pieces)), lease.head.max_body_bytes
    if size > most:
        raise kind(
            f"{what}: {size} bytes in one request, but this server takes at most {most}; send less at once"
        )

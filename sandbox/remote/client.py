"""The remote backend: a `Sandbox` whose programs run on a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sandbox.errors import SandboxClosed, SandboxError, SandboxLost, SandboxPathError, SandboxUnavailable
from sandbox.remote import wire
from sandbox.remote.connection import Connection, Lease, LeaseGone, connect, understood
from sandbox.remote.limits import create_frame
from sandbox.remote.shell import RemoteShell, check_size, run, usable
from sandbox.remote.transport import checked_address
from sandbox.types import CapabilityReport, ExecResult, Limits, SandboxSpec

BACKEND = "remote"
_MAX_COUNT = 2**53
_MAX_WORDS = 40_000  # what one head has room for; the server's backend may allow fewer


def create(where: str, spec: SandboxSpec) -> RemoteSandbox:
    """See `sandbox.create`; `where` is the server's address.

    Raises:
        SandboxUnavailable: the server cannot be reached, refuses, or has no room.
        ValueError: no address, a limit above the server's, or a spec that is too large for one request.
    """
    connection = connect(checked_address(where))
    pieces = create_frame(spec)
    try:
        try:
            return _create(connection, spec, pieces)
        except LeaseGone:  # of an earlier server, or after a long sleep; nothing was made under it
            return _create(connection, spec, pieces)
    except SandboxLost as error:
        raise SandboxUnavailable(str(error)) from error


def _create(connection: Connection, spec: SandboxSpec, pieces: list[bytes]) -> RemoteSandbox:
    lease = connection.lease()
    check_size(lease, pieces, "the spec's files", ValueError)
    body, _ = connection.numbered(lease, "/v1/sandboxes", pieces, new=True)
    return RemoteSandbox(connection, lease, understood(wire.MadeHead, body)[0].id, spec.limits)


def capabilities(where: str) -> CapabilityReport:
    """See `sandbox.capabilities`."""
    try:
        return connect(checked_address(where)).report()
    except SandboxError as error:
        return CapabilityReport(backend=BACKEND, enforced=frozenset(), missing={"exec": str(error)})


class RemoteSnapshot:
    """See `sandbox.base.SandboxSnapshot`."""

    def __init__(self, connection: Connection, lease: Lease, id: str) -> None:
        self._connection, self.lease, self.id = connection, lease, id
        self.released = False

    @property
    def held_bytes(self) -> int:
        """What it holds at the server, its share only of what others hold too; 0 once released or lost."""
        if self.released or self.lease.lost or self.lease.pid != os.getpid():
            return 0
        pieces = wire.encode(wire.Head, {})
        try:
            body = self._connection.look(self.lease, f"/v1/snapshots/{self.id}/held", pieces, most=0)
        except SandboxLost:
            return 0
        return understood(wire.HeldHead, body)[0].bytes

    def release(self) -> None:
        """Give it back to the server; safe to call twice."""
        released, self.released = self.released, True
        if not released:
            self._connection.end(self.lease, f"/v1/snapshots/{self.id}")


class RemoteSandbox:
    """See `sandbox.base.Sandbox`; made by `sandbox.create` and by `fork`.

    It belongs to the process that made it: in a forked child every method but `close` refuses.
    """

    def __init__(self, connection: Connection, lease: Lease, id: str, limits: Limits) -> None:
        self._connection, self._lease, self._id = connection, lease, id
        self.limits = limits
        self._closed = False

    @property
    def capabilities(self) -> CapabilityReport:
        """What the server's backend can enforce on its machine."""
        return self._lease.report

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout_s: float | None = None,
    ) -> ExecResult:
        """Run a program to its end, once, whatever happens to the connection.

        `usage.queue_s` is how long it waited for a free place at the server.

        Raises:
            SandboxClosed: the sandbox was closed.
            SandboxLost: the server is gone, was restarted, or ended the sandbox.
            ValueError: see the server's backend; also a deadline or standard input above the server's maximum.
        """
        words = encoded(argv)
        variables = dict(env or {})
        fields = {"argv": len(words), "env": len(variables), "timeout_s": timeout_s}
        parts = [*words, *wire.pairs(variables), os.fsencode(cwd), bytes(stdin)]
        pieces = wire.encode(wire.ExecHead, fields, parts)
        check_size(self._open(), pieces, "argv, env and stdin", ValueError)
        return run(self._connection, self._lease, self._path("exec"), pieces, self.limits)

    def shell(self) -> RemoteShell:
        """Open a stateful shell; several may be open."""
        id = self._make("shells")
        return RemoteShell(self._connection, self._lease, id, self.limits)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Read a regular file beneath the workspace, of at most `max_bytes` or the server's own limit."""
        lease = self._open()
        most = min(max_bytes, _MAX_COUNT)
        pieces = wire.encode(wire.ReadHead, {"max_bytes": most}, (path_bytes(path),))
        reply = self._connection.look(lease, self._path("read"), pieces, most=max(0, most))
        _, parts = understood(wire.ContentHead, reply)
        if len(parts) != 1 or len(parts[0]) > max(0, most):
            raise SandboxLost(
                "the server's answer is not of this protocol: no single part of the size asked for"
            )
        return parts[0]

    def write(self, path: str, data: bytes) -> None:
        """Write a regular file beneath the workspace, parents made."""
        pieces = wire.encode(wire.WriteHead, {}, (path_bytes(path), bytes(data)))
        check_size(self._open(), pieces, f"{path[:200]!r}", SandboxPathError)
        self._done("write", pieces)

    def snapshot(self) -> RemoteSnapshot:
        """Freeze the files, at the server.

        Raises:
            SandboxBusy: a shell is open.
        """
        return RemoteSnapshot(self._connection, self._lease, self._make("snapshots"))

    def restore(self, snapshot: object) -> None:
        """Put the files back to a snapshot of this sandbox or of a relative."""
        lease = self._open()
        if not isinstance(snapshot, RemoteSnapshot) or snapshot.lease is not lease:
            raise SandboxError(
                "the snapshot is not of this sandbox or a relative; take one here or in a fork"
            )
        if snapshot.released:
            raise SandboxError("the snapshot was released; take another")
        self._done("restore", wire.encode(wire.RestoreHead, {"snapshot": snapshot.id}))

    def fork(self) -> Self:
        """A new sandbox with the same files, at the same server."""
        return type(self)(self._connection, self._lease, self._make("fork"), self.limits)

    def close(self) -> None:
        """Kill everything and remove everything; safe to call twice and from another thread.

        When the server is gone, its end, or that of the lease, is the end of the sandbox as well.
        """
        closed, self._closed = self._closed, True
        if not closed:
            self._connection.end(self._lease, f"/v1/sandboxes/{self._id}")

    def posture(self) -> Mapping[str, Any]:
        """What is enforced on a program started now, measured by the server."""
        lease = self._open()
        pieces = wire.encode(wire.Head, {})
        reply = self._connection.look(lease, self._path("posture"), pieces, most=0)
        return understood(wire.PostureHead, reply)[0].posture

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, verb: str) -> str:
        return f"/v1/sandboxes/{self._id}/{verb}"

    def _open(self) -> Lease:
        if self._closed:
            raise SandboxClosed("the sandbox was closed; create another")
        return usable(self._lease)

    def _make(self, verb: str) -> str:
        body, _ = self._connection.numbered(self._open(), self._path(verb), wire.encode(wire.Head, {}))
        return understood(wire.MadeHead, body)[0].id

    def _done(self, verb: str, pieces: list[bytes]) -> None:
        body, _ = self._connection.numbered(self._open(), self._path(verb), pieces)
        understood(wire.DoneHead, body)


def encoded(argv: Sequence[str]) -> list[bytes]:
    """Arguments as parts.

    Raises:
        ValueError: they are not a list, too many, or text that no program could be given.
    """
    if isinstance(argv, str):
        raise ValueError(f"argv must be a list of strings, not {argv!r:.200}")
    words = list(argv)
    if len(words) > _MAX_WORDS:
        raise ValueError(
            f"argv is too long: {len(words)} words, at most {_MAX_WORDS}; pass large data by stdin or a file"
        )
    try:
        return [os.fsencode(word) for word in words]
    except UnicodeEncodeError:
        raise ValueError(
            f"argv contains a lone surrogate, which UTF-8 cannot encode: {argv!r:.200}"
        ) from None


def path_bytes(path: str) -> bytes:
    """A path as a part.

    Raises:
        SandboxPathError: it is no path that a file could have.
    """
    try:
        return os.fsencode(path)
    except UnicodeEncodeError as error:
        raise SandboxPathError(f"{path[:200]!r} is no path: {error}") from error

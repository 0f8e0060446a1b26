"""The seam: every backend is a `Sandbox`, and nothing above this layer knows which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from sandbox.types import CapabilityReport, ExecResult


class Shell(Protocol):
    """A stateful shell inside a sandbox: directory, variables and functions survive between commands."""

    def run(self, command: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one command. After a timeout the shell is restarted and its state is lost (`exit_code` None)."""
        ...

    def close(self) -> None:
        """Kill the shell and all that it started."""
        ...


class SandboxSnapshot(Protocol):
    """The files of a sandbox at one moment; immutable."""

    @property
    def held_bytes(self) -> int:
        """Memory or disk that it holds, its share only of what others hold too; 0 once released."""
        ...

    def release(self) -> None:
        """Give back its disk; safe to call twice."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """A place where untrusted code runs. Paths are relative to its workspace (`/workspace`)."""

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        timeout_s: float | None = None,
    ) -> ExecResult:
        """Run a program to its end; nothing that it started is alive when this returns.

        Raises:
            SandboxClosed: the sandbox was closed.
            SandboxLost: the machinery around the sandbox is gone (never the program's doing).
            ValueError: `cwd` leaves the workspace, or `argv` is empty.
        """
        ...

    def shell(self) -> Shell:
        """Open a stateful shell; several may be open."""
        ...

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Read a regular file beneath the workspace, links not followed.

        Raises:
            SandboxPathError: not a regular file, outside the workspace, absent, or larger than `max_bytes`.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write a regular file beneath the workspace, parents made, links not followed.

        Raises:
            SandboxPathError: the path leaves the workspace or crosses a link, or the workspace is full.
        """
        ...

    def snapshot(self) -> SandboxSnapshot:
        """Freeze the files. Refused (`SandboxBusy`) while a shell is open."""
        ...

    def restore(self, snapshot: SandboxSnapshot) -> None:
        """Put the files back to a snapshot of this sandbox or of a relative."""
        ...

    def fork(self) -> Self:
        """A new sandbox with the same files; neither sees what the other writes afterwards."""
        ...

    def close(self) -> None:
        """Kill everything and remove everything; safe to call twice and from another thread."""
        ...

    def posture(self) -> Mapping[str, Any]:
        """What is really enforced on a program started now, measured from outside it."""
        ...

    @property
    def capabilities(self) -> CapabilityReport:
        """What this backend can enforce on this machine."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

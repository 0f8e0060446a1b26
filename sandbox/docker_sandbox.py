"""The Docker backend: one hardened container for a sandbox, over the same workspaces as bubblewrap's."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sandbox import files, flatten, posture
from sandbox.docker_container import OWN_TASKS, Container
from sandbox.docker_daemon import Daemon
from sandbox.docker_programs import DockerPrograms
from sandbox.docker_shell import DockerShell
from sandbox.errors import SandboxBusy, SandboxClosed, SandboxError, SandboxLost
from sandbox.family import Family, Snapshot
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine
from sandbox.types import CapabilityReport, ExecResult, SandboxSpec

_CLOSE_WAIT_S = 30.0


class DockerSandbox:
    """See `sandbox.base.Sandbox`; made by `sandbox.create` and by `fork`.

    `/tmp` is emptied after every program, unless a shell is open: all programs of a sandbox share it.
    """

    def __init__(
        self,
        daemon: Daemon,
        machine: Machine,
        spec: SandboxSpec,
        report: CapabilityReport,
        family: Family | None = None,
        layers: tuple[Layer, ...] = (),
    ) -> None:
        self._daemon, self._machine, self._spec, self._report = daemon, machine, spec, report
        self.limits = spec.limits
        self._busy, self._lock = threading.RLock(), threading.Lock()
        self._shells: list[DockerShell] = []
        self._closed = False
        self._family = family.acquire() if family else Family(machine)
        self._stack: Stack | None = None
        self._container: Container | None = None
        self._programs: DockerPrograms | None = None
        machine.live.add(self.close)
        try:
            assert self._family.uid is not None
            self._stack = Stack(machine, self._family.uid, spec.limits.workspace_bytes, layers)
            self._container = Container(daemon, machine, spec, self._family.uid)
            self._programs = DockerPrograms(daemon, self._container, spec)
            self._programs.disk_full = lambda: self._stack is not None and self._stack.is_full()
            self._show()
        except BaseException:
            self.close()
            raise

    @property
    def capabilities(self) -> CapabilityReport:
        """What this backend can enforce on this machine."""
        return self._report

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

        A death by signal n shows as exit code -n, and so does an own exit with 128 + n. A program that does not
        exist gives 127. `close` from another thread ends it with reason `killed`.

        Raises:
            SandboxClosed: the sandbox was closed.
            SandboxLost: the daemon failed, or the container is gone (never the program's doing).
            ValueError: `argv` is empty or too long, `cwd` is no folder of the workspace, or `env` is malformed.
        """
        with self._busy:
            stack, programs = self._open()
            if not self._shells and stack.is_cramped():  # filled by a program: those that follow must start
                self._make_room(stack)
            try:
                return programs.run(
                    argv, stack, tasks=self._tasks(), stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s
                )
            finally:
                if not self._shells:
                    programs.container.clear()

    def shell(self) -> DockerShell:
        """Open a stateful bash; several may be open."""
        with self._busy:
            stack, programs = self._open()
            shell = DockerShell(
                programs, self._settle, lambda: programs.require_cwd(stack, "."), self._forget_shell
            )
            self._shells.append(shell)
            return shell

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Read a regular file beneath the workspace; see `files.read`."""
        with self._roots() as roots:
            return files.read(roots, path, max_bytes)

    def write(self, path: str, data: bytes) -> None:
        """Write a regular file beneath the workspace; see `files.write`."""
        with self._roots() as roots:
            files.write(roots, path, data, self._family.uid)

    def snapshot(self) -> Snapshot:
        """Freeze the files: cheap when nothing changed since the last time.

        Raises:
            SandboxBusy: a shell is open.
        """
        with self._busy:
            return Snapshot(self._family, self._freeze())

    def restore(self, snapshot: object) -> None:
        """Put the files back to a snapshot of this sandbox or of a relative.

        Raises:
            SandboxBusy: a shell is open.
            SandboxError: the snapshot was released, or is of another family.
        """
        with self._busy:
            stack = self._quiet_stack()
            if not isinstance(snapshot, Snapshot) or snapshot.family is not self._family:
                raise SandboxError(
                    "the snapshot is not of this sandbox or a relative; take one here or in a fork"
                )
            layers = snapshot.layers
            self._stack = Stack(self._machine, self._family.uid, self.limits.workspace_bytes, layers)
            self._hide()
            stack.close()
            self._show()

    def fork(self) -> Self:
        """A new sandbox with the same files.

        Raises:
            SandboxBusy: a shell is open.
        """
        with self._busy:
            layers = self._freeze()
            try:
                return type(self)(self._daemon, self._machine, self._spec, self._report, self._family, layers)
            finally:
                for layer in layers:
                    layer.release()

    def close(self) -> None:
        """Kill everything and remove everything; safe to call twice and from another thread."""
        if self._machine.pid != os.getpid():  # a forked child of the harness does not own it
            return
        with self._lock:
            closed, self._closed = self._closed, True
        if self._programs is not None:
            self._programs.stop()
        if closed:
            return
        if not self._busy.acquire(timeout=_CLOSE_WAIT_S):
            raise SandboxLost(f"a program is still running {_CLOSE_WAIT_S} s after its sandbox was killed")
        try:
            with contextlib.ExitStack() as last:
                last.callback(self._machine.live.discard, self.close)
                last.callback(self._family.release)
                if self._stack is not None:
                    last.callback(self._stack.close)
                if self._container is not None:
                    last.callback(self._container.remove)
                for shell in list(self._shells):
                    last.callback(shell.close)
        finally:
            self._busy.release()

    def posture(self) -> Mapping[str, Any]:
        """What the kernel says about a program started now; see `posture.describe`."""
        with self._busy:
            _, programs = self._open()
            program = programs.start(("/bin/cat",), with_stdin=True)
            try:
                program.run(10.0, b"?", -1, lambda: program.stdout.total_bytes > 0)
                program.locate(10.0)
                if not program.running or program.pid is None:
                    raise SandboxLost("the probe did not start within 10 s")
                seen = posture.describe(program.pid)
                # Docker lists a program's own group among the others, which gives it nothing.
                return {**seen, "groups": [group for group in seen["groups"] if group != seen["gid"]]}
            finally:
                program.kill("killed")
                programs.end(program)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tasks(self) -> int:
        """The group's bound: what the container and each shell need for themselves is not charged to programs."""
        return self.limits.processes + OWN_TASKS + len(self._shells)

    def _settle(self) -> Callable[[], None]:
        assert self._container is not None
        return self._container.running.bound(self._tasks())

    def _forget_shell(self, shell: DockerShell) -> None:
        with self._lock:
            if shell in self._shells:
                self._shells.remove(shell)

    def _open(self) -> tuple[Stack, DockerPrograms]:
        if self._closed or self._stack is None or self._programs is None:
            raise SandboxClosed("the sandbox was closed; create another")
        if self._machine.pid != os.getpid():
            raise SandboxClosed(
                f"this sandbox belongs to process {self._machine.pid}; create another in this one"
            )
        return self._stack, self._programs

    def _quiet_stack(self) -> Stack:
        stack, _ = self._open()
        if self._shells:
            raise SandboxBusy(f"{len(self._shells)} shells are open; close them first")
        return stack

    def _show(self) -> None:
        """Mount the stack, copied into one layer where the kernel cannot, and show it in the container."""
        assert self._stack is not None
        assert self._container is not None
        if not self._stack.mount():
            self._flatten(self._stack, len(self._stack.frozen))
        try:
            self._container.show(self._stack.shown)
        except OSError as error:
            raise SandboxLost(f"the workspace cannot be shown in the container: {error}") from error

    def _hide(self) -> None:
        assert self._container is not None
        try:
            self._container.hide()
        except OSError as error:
            raise SandboxLost(f"the workspace cannot be taken from the container: {error}") from error

    def _freeze(self) -> tuple[Layer, ...]:
        stack = self._quiet_stack()
        if stack.upper.is_empty():
            return stack.freeze()
        self._hide()  # an overlay must not lie over what another one reads
        try:
            if deep := stack.to_merge():
                self._flatten(stack, deep)
            return stack.freeze()
        finally:
            self._show()

    def _make_room(self, stack: Stack) -> None:
        self._hide()
        try:
            self._flatten(stack, len(stack.frozen))
        finally:
            self._show()

    def _flatten(self, stack: Stack, merged: int) -> None:
        """Copy the writable layer and the `merged` nearest frozen ones into one."""
        flatten.merge(stack, merged, self._family.uid)

    @contextlib.contextmanager
    def _roots(self) -> Iterator[list[int]]:
        with self._busy:
            roots = self._open()[0].open()
            try:
                yield roots
            finally:
                for fd in roots:
                    os.close(fd)

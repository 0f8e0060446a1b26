"""The default backend: a bubblewrap process for each program, on any Linux where user namespaces are allowed."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from sandbox import files, flatten, posture
from sandbox.cgroups import Cgroup
from sandbox.errors import SandboxBusy, SandboxClosed, SandboxError, SandboxLost
from sandbox.family import Family, Snapshot
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine
from sandbox.network import Attempt, Policy
from sandbox.network.gate import Gate
from sandbox.programs import Programs
from sandbox.shell import BubblewrapShell
from sandbox.types import CapabilityReport, ExecResult, SandboxSpec

_names = itertools.count(1)
_CLOSE_WAIT_S = 30.0


class BubblewrapSandbox:
    """See `sandbox.base.Sandbox`; made by `sandbox.create` and by `fork`.

    Nothing runs between calls, unless a shell is open: what persists is the workspace. `/tmp` is new for every
    program. Where this process cannot mount, opening a shell after a snapshot copies all files into one layer.
    """

    def __init__(
        self,
        machine: Machine,
        spec: SandboxSpec,
        report: CapabilityReport,
        family: Family | None = None,
        layers: tuple[Layer, ...] = (),
    ) -> None:
        self.machine, self._spec, self._report = machine, spec, report
        self.limits = spec.limits
        self._cgroup: Cgroup | None = None
        self._busy, self._lock = threading.RLock(), threading.Lock()
        self._shells: list[BubblewrapShell] = []
        self._closed = False
        self._family = family.acquire() if family else Family(machine)
        self._stack: Stack | None = None
        self._programs = Programs(machine, spec, self._family)
        machine.live.add(self.close)
        try:
            if machine.cgroups.usable:
                self._cgroup = self._programs.cgroup = machine.cgroups.make(f"{next(_names):x}")
                self._bound(0)
            if spec.allow:
                self._programs.gate = Gate(machine.launcher, machine.base, Policy.parse(spec.allow))
            self._stack = Stack(machine, self._family.uid, spec.limits.workspace_bytes, layers)
            self._programs.evidence = replace(self._programs.evidence, disk_full=self._disk_full)
            self._settle()
        except BaseException:
            self.close()
            raise

    @property
    def attempts(self) -> list[Attempt]:
        """Connections that programs asked the proxy for, newest last; empty without an allow-list."""
        gate = self._programs.gate
        return gate.attempts if gate is not None else []

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
            SandboxLost: bubblewrap failed (never the program's doing).
            ValueError: `argv` is empty or too long, `cwd` is no folder of the workspace, or `env` is malformed.
        """
        with self._busy:
            stack = self._open_stack()
            if not self._shells and stack.is_cramped():  # filled by a program: those that follow must start
                self._flatten(stack, len(stack.frozen))
            workspace = stack.mount_arguments()
            if self._cgroup is not None:
                self._cgroup.allow(self._processes(len(self._shells)))
            return self._programs.run(argv, workspace, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)

    def shell(self) -> BubblewrapShell:
        """Open a stateful bash; several may be open."""
        with self._busy:
            stack = self._open_stack()
            if (
                not stack.mount()
            ):  # an overlay within the sandbox would not see what the host writes meanwhile
                self._flatten(stack, len(stack.frozen))
            self._bound(len(self._shells) + 1)
            shell = BubblewrapShell(self._programs, stack.mount_arguments, self._forget_shell)
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
            layers = self._freeze()
            self._settle()
            return Snapshot(self._family, layers)

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
            self._stack = Stack(self.machine, self._family.uid, self.limits.workspace_bytes, layers)
            stack.close()
            self._settle()

    def fork(self) -> Self:
        """A new sandbox with the same files.

        Raises:
            SandboxBusy: a shell is open.
        """
        with self._busy:
            layers = self._freeze()
            try:
                self._settle()
                return type(self)(self.machine, self._spec, self._report, self._family, layers)
            finally:
                for layer in layers:
                    layer.release()

    def close(self) -> None:
        """Kill everything and remove everything; safe to call twice and from another thread."""
        if self.machine.pid != os.getpid():  # a forked child of the harness does not own it
            return
        with self._lock:
            closed, self._closed = self._closed, True
        self._programs.stop()
        if closed:
            return
        if not self._busy.acquire(timeout=_CLOSE_WAIT_S):
            raise SandboxLost(f"a program is still running {_CLOSE_WAIT_S} s after its sandbox was killed")
        try:
            with contextlib.ExitStack() as last:
                last.callback(self.machine.live.discard, self.close)
                last.callback(self._family.release)
                if self._cgroup is not None:
                    last.callback(self._cgroup.remove)
                if self._stack is not None:
                    last.callback(self._stack.close)
                if self._programs.gate is not None:
                    last.callback(self._programs.gate.close)
                last.callback(self._programs.close)
                for shell in list(self._shells):
                    last.callback(shell.close)
        finally:
            self._busy.release()

    def posture(self) -> Mapping[str, Any]:
        """What the kernel says about a program started now; see `posture.describe`."""
        with self._busy:
            process = self._programs.start(
                ("/bin/cat",), self._open_stack().mount_arguments(), with_stdin=True
            )
            try:
                return posture.describe(posture.program_of(process))
            finally:
                process.kill("killed")
                self._programs.end(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bound(self, shells: int) -> None:
        if self._cgroup is not None:
            self._cgroup.set_limits(memory_bytes=self.limits.memory_bytes, processes=self._processes(shells))

    def _processes(self, shells: int) -> int:
        """The group's bound: what each launch needs for itself is not charged to the program."""
        own = 2 if self._programs.gate is None else 3
        return self.limits.processes + own * (1 + shells)

    def _disk_full(self) -> bool:
        return self._stack is not None and self._stack.is_full()

    def _forget_shell(self, shell: BubblewrapShell) -> None:
        with self._lock:
            if shell in self._shells:
                self._shells.remove(shell)

    def _open_stack(self) -> Stack:
        if self._closed or self._stack is None:
            raise SandboxClosed("the sandbox was closed; create another")
        return self._stack

    def _quiet_stack(self) -> Stack:
        stack = self._open_stack()
        if self._shells:
            raise SandboxBusy(f"{len(self._shells)} shells are open; close them first")
        return stack

    def _freeze(self) -> tuple[Layer, ...]:
        stack = self._quiet_stack()
        if not stack.upper.is_empty() and (deep := stack.to_merge()):
            self._flatten(stack, deep)
        return stack.freeze()

    def _settle(self) -> None:
        """Without overlays, a stack must not have frozen layers: copy them."""
        if self._stack is not None and self._stack.frozen and not self.machine.overlay:
            self._flatten(self._stack, len(self._stack.frozen))

    def _flatten(self, stack: Stack, merged: int) -> None:
        """Copy the writable layer and the `merged` nearest frozen ones into one."""
        flatten.merge(stack, merged, self._family.uid)

    @contextlib.contextmanager
    def _roots(self) -> Iterator[list[int]]:
        with self._busy:
            roots = self._open_stack().open()
            try:
                yield roots
            finally:
                for fd in roots:
                    os.close(fd)

"""The default backend: a bubblewrap process for each program, on any Linux where user namespaces are allowed."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from sandbox import posture
from sandbox.cgroups import Cgroup
from sandbox.family import Family
from sandbox.layered import LayeredSandbox
from sandbox.layers import Layer
from sandbox.machine import Machine
from sandbox.network import Attempt, Policy
from sandbox.network.gate import Gate
from sandbox.programs import Programs
from sandbox.shell import BubblewrapShell
from sandbox.types import CapabilityReport, ExecResult, SandboxSpec

_names = itertools.count(1)


class BubblewrapSandbox(LayeredSandbox):
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
        super().__init__(machine, spec, report, family)
        self._cgroup: Cgroup | None = None
        self._programs = Programs(machine, spec, self._family)
        try:
            if machine.cgroups.usable:
                self._cgroup = self._programs.cgroup = machine.cgroups.make(f"{next(_names):x}")
                self._bound(0)
            if spec.allow:
                self._programs.gate = Gate(machine.launcher, machine.base, Policy.parse(spec.allow))
            self._stack = self._stacked(layers)
            self._programs.evidence = replace(self._programs.evidence, disk_full=self._disk_full)
            self._show()
        except BaseException:
            self.close()
            raise

    @property
    def attempts(self) -> list[Attempt]:
        """Connections that programs asked the proxy for, newest last; empty without an allow-list."""
        gate = self._programs.gate
        return gate.attempts if gate is not None else []

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
            workspace = self._roomy_stack().mount_arguments()
            if self._cgroup is not None:
                self._cgroup.allow(self._processes(len(self._shells)))
            return self._programs.run(argv, workspace, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)

    def shell(self) -> BubblewrapShell:
        """Open a stateful bash; several may be open."""
        with self._busy:
            stack = self._open_stack()
            # An overlay within the sandbox would not see what the host writes meanwhile.
            if not stack.mount():
                self._flatten(stack, len(stack.frozen))
            self._bound(len(self._shells) + 1)
            shell = BubblewrapShell(self._programs, stack.mount_arguments, self._forget_shell)
            self._shells.append(shell)
            return shell

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

    def _bound(self, shells: int) -> None:
        if self._cgroup is not None:
            self._cgroup.set_limits(memory_bytes=self.limits.memory_bytes, processes=self._processes(shells))

    def _processes(self, shells: int) -> int:
        """The group's bound: what each launch needs for itself is not charged to the program."""
        own = 2 if self._programs.gate is None else 3
        return self.limits.processes + own * (1 + shells)

    def _relative(self, layers: tuple[Layer, ...]) -> Self:
        return type(self)(self.machine, self._spec, self._report, self._family, layers)

    def _show(self) -> None:
        """Nothing where each program mounts an overlay; without overlays, no layer may stay frozen."""
        if self._stack is not None and self._stack.frozen and not self.machine.overlay:
            self._flatten(self._stack, len(self._stack.frozen))

    def _hide(self) -> None:
        """Nothing: no program runs now."""

    def _stop(self) -> None:
        self._programs.stop()

    def _release(self, last: contextlib.ExitStack) -> None:
        if self._cgroup is not None:
            last.callback(self._cgroup.remove)
        if self._stack is not None:
            last.callback(self._stack.close)
        if self._programs.gate is not None:
            last.callback(self._programs.gate.close)
        last.callback(self._programs.close)

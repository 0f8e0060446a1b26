"""The gVisor backend: each program under a kernel of its own, over the same workspaces as bubblewrap's."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from sandbox import files, posture, proctree
from sandbox.cgroups import Cgroup
from sandbox.conclude import not_run
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.gvisor_family import GvisorFamily
from sandbox.gvisor_programs import GvisorPrograms
from sandbox.gvisor_shell import GvisorShell
from sandbox.layered import LayeredSandbox
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine
from sandbox.types import MIB, CapabilityReport, ExecResult, SandboxSpec, Usage

_names = itertools.count(1)
_OWN_MEMORY_BYTES = 48 * MIB
"""What runsc's own processes may take of a group's memory: about 17 MiB were measured, for each kernel that runs."""
_OWN_TASKS, _TASKS_EACH = 64, 6
"""Host tasks of runsc itself, and for each process or thread of a program."""
_UNMEASURED = (
    *("effective_capabilities", "permitted_capabilities", "bounding_capabilities", "ambient_capabilities"),
    *("descriptors", "limits", "writable_mounts", "init_command"),
)
"""Of a program these exist in gVisor's kernel alone; the host process's are that kernel's."""


class GvisorSandbox(LayeredSandbox):
    """See `sandbox.base.Sandbox`; made by `sandbox.create` and by `fork`.

    Nothing runs between calls, unless a shell is open. `/tmp` is new for every program. The bound of processes holds
    for each program and each shell, not for all together.
    """

    def __init__(
        self,
        machine: Machine,
        runsc: str,
        spec: SandboxSpec,
        report: CapabilityReport,
        family: GvisorFamily | None = None,
        layers: tuple[Layer, ...] = (),
    ) -> None:
        self._runsc, self._users = runsc, family or GvisorFamily(machine)
        super().__init__(machine, spec, report, self._users)
        if family is None:
            self._users.release()  # counted by the line before
        self._cgroup: Cgroup | None = None
        self._programs = GvisorPrograms(machine, spec, self._users, runsc)
        try:
            self._cgroup = self._programs.cgroup = machine.cgroups.make(f"g{next(_names):x}")
            memory_bytes = self.limits.memory_bytes + _OWN_MEMORY_BYTES
            self._cgroup.set_limits(memory_bytes=memory_bytes, processes=self._tasks(0))
            self._stack = self._stacked(layers)
            self._programs.evidence = replace(self._programs.evidence, disk_full=self._disk_full)
            self._show()
        except BaseException:
            self.close()
            raise

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
        exist gives 127. `close` from another thread ends it with reason `killed`, and so does what makes gVisor fail.

        Raises:
            SandboxClosed: the sandbox was closed.
            SandboxLost: runsc failed before any program ran.
            ValueError: `argv` is empty or too long, `cwd` is no folder of the workspace, or `env` is malformed.
        """
        with self._busy:
            stack = self._roomy_stack()
            try:
                self._require_folder(stack, cwd)
            except SandboxPathError:
                if files.components(cwd):
                    raise
                return not_run(126, b"/workspace: Permission denied\n", Usage())
            assert self._cgroup is not None
            self._cgroup.allow(self._tasks(len(self._shells)))
            workspace = stack.mount_arguments()
            return self._programs.run(argv, workspace, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s)

    def shell(self) -> GvisorShell:
        """Open a stateful bash; several may be open."""
        with self._busy:
            stack = self._open_stack()
            assert self._cgroup is not None
            assert self._family.uid is not None
            self._cgroup.allow(self._tasks(len(self._shells) + 1))
            shell = GvisorShell(
                self.machine, self._family.uid, self._programs, stack.mount_arguments, self._forget_shell
            )
            self._shells.append(shell)
            return shell

    def posture(self) -> Mapping[str, Any]:
        """What the kernel says about the host process that runs a program's code; see `posture.describe`.

        What a program has only in gVisor's kernel is left out. `kernel_capabilities` are that kernel's own, in a user
        namespace of its own.
        """
        with self._busy:
            process = self._programs.start(
                ("/bin/cat",), self._open_stack().mount_arguments(), with_stdin=True
            )
            try:
                seen = posture.describe(_innermost(posture.program_of(process)))
                kernel = {"kernel_capabilities": seen["effective_capabilities"]}
                return {name: value for name, value in seen.items() if name not in _UNMEASURED} | kernel
            finally:
                process.kill("killed")
                self._programs.end(process)

    def _tasks(self, shells: int) -> int:
        return (self.limits.processes * _TASKS_EACH + _OWN_TASKS) * (1 + shells)

    def _require_folder(self, stack: Stack, cwd: str) -> None:
        with contextlib.ExitStack() as opened:
            roots = stack.open()
            for fd in roots:
                opened.callback(os.close, fd)
            files.require_folder(roots, cwd)

    def _relative(self, layers: tuple[Layer, ...]) -> Self:
        return type(self)(self.machine, self._runsc, self._spec, self._report, self._users, layers)

    def _show(self) -> None:
        """Mount the stack outside, where its layers may be read, or copy it into one layer."""
        if self._stack is not None and not self._stack.mount():
            self._flatten(self._stack, len(self._stack.frozen))

    def _hide(self) -> None:
        """Nothing: no program runs now, and the stack takes its mount away itself."""

    def _stop(self) -> None:
        self._programs.stop()

    def _release(self, last: contextlib.ExitStack) -> None:
        if self._cgroup is not None:
            last.callback(self._cgroup.remove)
        if self._stack is not None:
            last.callback(self._stack.close)
        last.callback(self._programs.close)


def _innermost(pid: int) -> int:
    """The process that stands for a program: the last beneath runsc's kernel, which alone of its children has some."""
    kernels = [child for child in proctree.children(pid) if proctree.children(child)]
    if not kernels:
        raise SandboxLost("runsc has no process for the program; it may have been killed from outside")
    pid = kernels[0]
    while below := proctree.children(pid):
        pid = below[-1]
    return pid

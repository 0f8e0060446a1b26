"""The Docker backend: one hardened container for a sandbox, over the same workspaces as bubblewrap's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from sandbox import posture
from sandbox.docker_container import OWN_TASKS, Container
from sandbox.docker_daemon import Daemon
from sandbox.docker_programs import DockerPrograms
from sandbox.docker_shell import DockerShell
from sandbox.errors import SandboxLost
from sandbox.family import Family
from sandbox.layered import LayeredSandbox
from sandbox.layers import Layer
from sandbox.machine import Machine
from sandbox.network import Attempt
from sandbox.types import CapabilityReport, ExecResult, SandboxSpec


class DockerSandbox(LayeredSandbox):
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
        super().__init__(machine, spec, report, family)
        self._daemon = daemon
        self._container: Container | None = None
        self._programs: DockerPrograms | None = None
        try:
            assert self._family.uid is not None
            self._stack = self._stacked(layers)
            self._container = Container(daemon, machine, spec, self._family.uid)
            self._programs = DockerPrograms(daemon, self._container, spec)
            self._programs.disk_full = self._disk_full
            self._show()
        except BaseException:
            self.close()
            raise

    @property
    def attempts(self) -> list[Attempt]:
        """Connections that programs asked the proxy for, newest last; empty without an allow-list."""
        port = self._container.port if self._container is not None else None
        return port.attempts if port is not None else []

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
            programs = self._open()
            stack = self._roomy_stack()
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
            stack, programs = self._open_stack(), self._open()
            shell = DockerShell(
                programs, self._settle, lambda: programs.require_cwd(stack, "."), self._forget_shell
            )
            self._shells.append(shell)
            return shell

    def posture(self) -> Mapping[str, Any]:
        """What the kernel says about a program started now; see `posture.describe`."""
        with self._busy:
            programs = self._open()
            program = programs.start(("/bin/cat",), with_stdin=True)
            try:
                program.run(10.0, b"?", keep_open=True, done=lambda: program.stdout.total_bytes > 0)
                program.locate(10.0)
                if not program.running or program.pid is None:
                    raise SandboxLost("the probe did not start within 10 s")
                seen = posture.describe(program.pid)
                # Docker lists a program's own group among the others, which gives it nothing.
                return {**seen, "groups": [group for group in seen["groups"] if group != seen["gid"]]}
            finally:
                program.kill("killed")
                programs.end(program)

    def _tasks(self) -> int:
        """The group's bound: what the container and each shell need for themselves is not charged to programs."""
        return self.limits.processes + OWN_TASKS + len(self._shells)

    def _settle(self) -> Callable[[], None]:
        assert self._container is not None
        return self._container.running.bound(self._tasks())

    def _open(self) -> DockerPrograms:
        self._open_stack()
        assert self._programs is not None
        return self._programs

    def _relative(self, layers: tuple[Layer, ...]) -> Self:
        return type(self)(self._daemon, self.machine, self._spec, self._report, self._family, layers)

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

    def _stop(self) -> None:
        if self._programs is not None:
            self._programs.stop()

    def _release(self, last: contextlib.ExitStack) -> None:
        if self._stack is not None:
            last.callback(self._stack.close)
        if self._container is not None:
            last.callback(self._container.remove)

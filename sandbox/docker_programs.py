"""All programs of one container: what is started, how it is concluded, and that none is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from sandbox import files, launch
from sandbox.conclude import Counters, exit_code
from sandbox.docker_container import Container
from sandbox.docker_daemon import Daemon
from sandbox.docker_groups import ShellGroup, kill
from sandbox.docker_pipes import ShellPipes
from sandbox.docker_program import Program, Wanted
from sandbox.errors import SandboxClosed, SandboxLost
from sandbox.layers import Stack
from sandbox.programs import checked_argv, through_env
from sandbox.types import ExecResult, Reason, SandboxSpec, Usage


class DockerPrograms:
    """Starts and concludes. `stop` may be called from any thread."""

    def __init__(self, daemon: Daemon, container: Container, spec: SandboxSpec) -> None:
        self._daemon, self.container, self._spec = daemon, container, spec
        self.limits = spec.limits
        self._running: set[Program] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.disk_full: Callable[[], bool] = lambda: False
        """Whether the workspace is full now."""

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        with_stdin: bool = False,
        pipes: ShellPipes | None = None,
    ) -> Program:
        """Start a program; the caller supervises it and calls `end`.

        Raises:
            SandboxClosed: `stop` was called.
            SandboxLost: the daemon failed.
            ValueError: see `sandbox.base.Sandbox.exec`.
        """
        words = through_env(checked_argv(argv))
        folder = f"{files.WORKSPACE}/{'/'.join(files.components(cwd))}".rstrip("/")
        if self._stopped.is_set():
            raise SandboxClosed("the sandbox was closed; create another")
        gate = self.container.port.env if self.container.port is not None else {}
        shown = launch.environment({**gate, **self._spec.env, **(env or {})})
        wanted = Wanted(words, shown, folder, with_stdin)
        program = Program(self._daemon, self.container, wanted, self.limits, pipes)
        with self._lock:
            self._running.add(program)
        if self._stopped.is_set():
            program.kill("killed")
        return program

    def run(
        self,
        argv: Sequence[str],
        stack: Stack,
        *,
        tasks: int,
        stdin: bytes,
        env: Mapping[str, str] | None,
        cwd: str,
        timeout_s: float | None,
    ) -> ExecResult:
        """Start a program, see it to its end, and kill what it left."""
        self.container.require_alive()
        groups, started = self.container.running, time.monotonic()
        counters, cpu_s = Counters.start(groups.cgroup), groups.cpu_s()
        settle = groups.bound(tasks)
        program = self.start(argv, env=env, cwd=cwd, with_stdin=bool(stdin))
        try:
            if program.locate(self.limits.timeout_s):
                settle()
            program.run(self.limits.timeout_s if timeout_s is None else timeout_s, stdin)
        except BaseException:
            program.kill("killed")
            raise
        finally:
            code = self.end(program)
        if program.kill_reason is None:
            self.container.require_alive()
        usage = counters.usage(time.monotonic() - started, max(0.0, groups.cpu_s() - cpu_s))
        return self.explained(
            conclude(program, code, counters.reason(), usage, lambda: self.require_cwd(stack, cwd))
        )

    def explained(self, result: ExecResult) -> ExecResult:
        """The result, with the reason `disk` if it failed, no other limit was met, and the workspace is full."""
        failed = result.reason == "ok" and result.exit_code != 0
        return replace(result, reason="disk") if failed and self.disk_full() else result

    def end(self, program: Program, group: ShellGroup | None = None) -> int | None:
        """Wait until nothing of a program is left, or of a shell's group, and return the exit code.

        Raises:
            SandboxLost: something survives, or the daemon failed.
        """

        def kill_rest() -> None:
            if group is None:
                self.container.kill_programs()
            elif group.pids is not None:
                kill(group.pids)

        try:
            return program.end(kill_rest)
        finally:
            with self._lock:
                self._running.discard(program)

    def stop(self) -> None:
        """Kill what runs, and refuse what comes."""
        self._stopped.set()
        with self._lock:
            running = list(self._running)
        for program in running:
            program.kill("killed")

    def require_cwd(self, stack: Stack, cwd: str) -> None:
        """Raise what says that a folder cannot be entered, if that is so."""
        with ExitStack() as opened:
            roots = stack.open()
            for fd in roots:
                opened.callback(os.close, fd)
            files.require_folder(roots, cwd)


def conclude(
    program: Program, code: int | None, hit: Reason, usage: Usage, check_cwd: Callable[[], None]
) -> ExecResult:
    """The result of a program that is over; `hit` is the total that the kernel counted a refusal of.

    Raises:
        SandboxLost: the daemon did not start it, and no total of the sandbox was used up.
        SandboxPathError: raised by `check_cwd`, which is asked only then.
    """
    shown: int | None = exit_code(code) if code is not None else None
    reason = program.kill_reason or hit
    if program.kill_reason is not None or (reason == "oom" and shown == -signal.SIGKILL):
        shown = None
    if not program.started and program.kill_reason is None:
        shown = None
        if hit == "ok":
            check_cwd()
            if program.own_system:  # a program may have removed or broken what starts the next one
                return ExecResult(
                    exit_code=126 if code is None else exit_code(code),
                    stdout=program.stdout.output(),
                    stderr=program.stderr.output(),
                    reason="ok",
                    usage=usage,
                )
            said = program.stdout.output().text.strip() or program.stderr.output().text.strip()
            raise SandboxLost(f"docker did not start the program: {said[:500] or 'no message'}")
    return ExecResult(
        exit_code=shown,
        stdout=program.stdout.output(),
        stderr=program.stderr.output(),
        reason=reason,
        usage=usage,
    )

"""A stateful bash in a container, with the protocol of `sandbox.shell`, over the pipes of `sandbox.docker_pipes`."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

from sandbox import shell as protocol
from sandbox.conclude import Counters, exit_code
from sandbox.docker_groups import ShellGroup
from sandbox.docker_pipes import ShellPipes
from sandbox.docker_program import Program
from sandbox.docker_programs import DockerPrograms, conclude
from sandbox.errors import SandboxClosed
from sandbox.types import ExecResult

_BASH = "/bin/bash --norc --noprofile"
_START_S = 10.0


class DockerShell:
    """See `sandbox.base.Shell`. A command that ends the shell gives its exit code as the result.

    Jobs in the background live on between commands, until the shell is closed or a command outlasts its limit.
    """

    def __init__(
        self,
        programs: DockerPrograms,
        settle: Callable[[], Callable[[], None]],
        check_cwd: Callable[[], None],
        closed: Callable[[DockerShell], None],
    ) -> None:
        self._programs, self._settle, self._check_cwd, self._on_close = programs, settle, check_cwd, closed
        self._lock = threading.Lock()
        self._program: Program | None = None
        self._group: ShellGroup | None = None
        self._pipes: ShellPipes | None = None
        self._closed = False
        self._start()

    def run(self, command: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one command; after a limit struck, the next command starts in a fresh shell.

        Raises:
            SandboxClosed: the shell or its sandbox was closed.
            SandboxLost: the daemon failed.
            ValueError: the command contains a NUL byte or what UTF-8 cannot encode.
        """
        token = secrets.token_hex(16)
        lines = protocol.script(command, token)
        with self._lock:
            if self._closed:
                raise SandboxClosed("the shell was closed; open another")
            self._programs.container.require_alive()
            if self._program is None and (refused := self._start()) is not None:
                return refused
            try:
                return self._run(token, lines, timeout_s)
            except BaseException:
                self._end()
                raise

    def close(self) -> None:
        """Kill the shell and all that it started."""
        self._closed = True
        if (program := self._program) is not None:
            program.kill("killed")
        with self._lock:
            self._end()
        self._on_close(self)

    def _run(self, token: str, script: bytes, timeout_s: float | None) -> ExecResult:
        program, group = self._program, self._group
        assert program is not None
        assert group is not None
        limits, started = self._programs.limits, time.monotonic()
        groups = self._programs.container.running
        counters, cpu_s = Counters.start(group), groups.cpu_s()
        program.renew()
        ended = program.run(
            limits.timeout_s if timeout_s is None else timeout_s,
            script,
            done=lambda: protocol.parse_notice(program.noticed, token) is not None,
        )
        code = protocol.parse_notice(program.noticed, token)
        lost = ended or code is None
        if lost:
            end = self._end()
            if program.kill_reason is None:
                self._programs.container.require_alive()
        else:
            program.take()
        usage = counters.usage(time.monotonic() - started, max(0.0, groups.cpu_s() - cpu_s))
        if lost:
            return conclude(program, end, counters.reason(), usage, self._check_cwd)
        assert code is not None
        return self._programs.explained(
            ExecResult(
                exit_code=exit_code(code),
                stdout=program.stdout.output(),
                stderr=program.stderr.output(),
                reason=counters.reason(),
                usage=usage,
            )
        )

    def _start(self) -> ExecResult | None:
        """Start bash and give it its pipe; the result of the attempt where the sandbox's totals forbid it."""
        container = self._programs.container
        groups, counters, settle = container.running, Counters.start(container.running.cgroup), self._settle()
        try:
            self._pipes = pipes = ShellPipes(container.notices, container.uid)
            command = f"exec {_BASH} -s {pipes.redirections}"
            self._program = self._programs.start((*_BASH.split(), "-c", command), pipes=pipes)
            self._program.locate(_START_S)
            settle()
            if self._program.running and self._program.pid is not None:
                self._group = groups.add_shell(self._program.pid)
                token = secrets.token_hex(16)
                known = self._program
                known.run(
                    _START_S,
                    protocol.script("", token),
                    done=lambda: protocol.parse_notice(known.noticed, token) is not None,
                )
                if known.running and known.kill_reason is None:
                    pipes.hide()
                    return None
            return self._refused(counters)
        except BaseException:
            self._end()
            raise

    def _refused(self, counters: Counters) -> ExecResult:
        program = self._program
        assert program is not None
        code = self._end()
        return conclude(program, code, counters.reason(), counters.usage(0.0, 0.0), self._check_cwd)

    def _end(self) -> int | None:
        program, self._program = self._program, None
        group, self._group = self._group, None
        pipes, self._pipes = self._pipes, None
        try:
            if program is None:
                return None
            if program.running:
                program.kill("killed")
            return self._programs.end(program, group)
        finally:
            if group is not None:
                self._programs.container.running.drop_shell(group)
            if pipes is not None:
                pipes.close()

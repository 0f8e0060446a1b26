"""A stateful bash in a sandbox.

Bash reads its script from standard input: one line takes so many characters and evaluates them. They evaluate the
command, with neither that input nor the notice pipe open, and then write a token, drawn anew for each command, and
the exit code to the notice pipe. What the command prints is on other pipes, so it cannot pass for its end. Bash reads
lines from a pipe byte by byte, at a system call each, but takes a counted number of characters at once.
"""

from __future__ import annotations

import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Sequence

from sandbox.conclude import Counters, exit_code
from sandbox.errors import SandboxClosed
from sandbox.launch import encodable
from sandbox.process import Process
from sandbox.programs import Programs
from sandbox.pump import Pump
from sandbox.types import ExecResult

BASH = "/bin/bash --norc --noprofile"
NOTICE = 3
"""The notice pipe in the shell. Bash keeps descriptors of its own from 10 upwards and would trip over ours there."""


def parse_notice(noticed: bytes | bytearray, token: str) -> int | None:
    """The exit code that a token stands before; None while it has not come.

    A program can read the token off its shell's input, and so forge its own exit code; it gains nothing by it.
    """
    if token.encode() not in noticed:  # nearly always so until the end
        return None
    for line in bytes(noticed).split(b"\n")[:-1]:
        name, _, code = line.partition(b" ")
        if name == token.encode() and code.isdigit() and len(code) <= 3:
            return int(code)
    return None


class BubblewrapShell:
    """See `sandbox.base.Shell`. A command that ends the shell (`exit`, `set -e`) gives its exit code as the result.

    Jobs in the background live on between commands, until the shell is closed or a command outlasts its limit.
    """

    def __init__(
        self,
        programs: Programs,
        workspace: Callable[[], Sequence[str]],
        closed: Callable[[BubblewrapShell], None],
    ) -> None:
        self._programs, self._workspace, self._on_close = programs, workspace, closed
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._notice = -1  # our end of the notice pipe
        self._refusals = 0  # of memory, when the shell started
        self._closed = False
        self._start()

    def run(self, command: str, *, timeout_s: float | None = None) -> ExecResult:
        """Run one command; after a limit struck, the next command starts in a fresh shell.

        Raises:
            SandboxClosed: the shell or its sandbox was closed.
            SandboxLost: the shell cannot be started again.
            ValueError: the command contains a NUL byte or what UTF-8 cannot encode.
        """
        token = secrets.token_hex(16)
        lines = script(command, token)
        with self._lock:
            if self._closed:
                raise SandboxClosed("the shell was closed; open another")
            process = self._process or self._start()
            try:
                return self._run(process, token, lines, timeout_s)
            except BaseException:
                self._end()
                raise

    def close(self) -> None:
        """Kill the shell and all that it started."""
        self._closed = True
        if (process := self._process) is not None:
            process.kill("killed")
        with self._lock:
            self._end()
        self._on_close(self)

    def _run(self, process: Process, token: str, script: bytes, timeout_s: float | None) -> ExecResult:
        limits, started = self._programs.limits, time.monotonic()
        counters = Counters.start(self._programs.cgroup, refusals=self._refusals)
        pump = Pump(process, limits, script, self._notice)
        ended = pump.run(
            limits.timeout_s if timeout_s is None else timeout_s,
            lambda: parse_notice(pump.noticed, token) is not None,
        )
        shown = parse_notice(pump.noticed, token)
        if ended or shown is None:
            self._process = None
            end = self._programs.end(process, pump)
            return self._programs.conclude(end, process, pump, counters, started)
        pump.drain()
        code, reason = exit_code(shown), counters.reason()
        return ExecResult(
            exit_code=code,
            stdout=pump.stdout.output(),
            stderr=pump.stderr.output(),
            reason=self._programs.evidence.failed(code) if reason == "ok" else reason,
            usage=counters.usage(time.monotonic() - started, 0.0),
        )

    def _start(self) -> Process:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(ours, False)
            if (group := self._programs.cgroup) is not None:
                self._refusals = group.memory_refusals()
            moved = "" if theirs == NOTICE else f" {NOTICE}>&{theirs} {theirs}>&-"
            command = (*BASH.split(), "-c", f"exec {BASH} -s{moved}")
            self._process = self._programs.start(command, self._workspace(), with_stdin=True, extra=(theirs,))
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._process.pipes.extra.append(ours)
        self._notice = ours
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill("killed")
        self._programs.end(process)


def script(command: str, token: str) -> bytes:
    """The lines that run a command and then write the token and its exit code to the notice pipe.

    Raises:
        ValueError: the command contains a NUL byte or what UTF-8 cannot encode.
    """
    if "\0" in command or not encodable(command):
        raise ValueError("a command cannot contain a NUL byte or a lone surrogate; write it without")
    # The variable goes first: where a program has all variables exported, it would follow in its environment.
    text = f"builtin unset -v __c;builtin eval -- {_quoted(command)} </dev/null {NOTICE}>&-\n"
    text += f"builtin printf '%s %d\\n' {token} $? >&{NOTICE}\n"
    return f'builtin read -rN{len(text)} __c;builtin eval "$__c"\n{text}'.encode("ascii")


def _quoted(command: str) -> str:
    """The command as one word of ASCII: what bash counts are characters, of whatever locale the shell has by now."""
    if command.isascii():
        return shlex.quote(command)
    escaped = command.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(chr(b) if b < 128 else f"\\x{b:02x}" for b in os.fsencode(escaped)) + "'"

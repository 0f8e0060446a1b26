"""One running bubblewrap, seen from outside: its pids, its pipes, how it is killed and how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import proctree
from sandbox.errors import SandboxLost
from sandbox.types import Reason

_DEATH_S = 10.0  # how long a killed tree may take; only a task stuck in the kernel takes longer
_GRACE_S = 2.0
_LINE_BYTES = 65536  # of the status pipe; bubblewrap writes a few hundred
_PID_MAX = 1 << 22


@dataclass(frozen=True, slots=True)
class End:
    """How a launch ended, by what bubblewrap reported on its own pipe.

    `exit_code` is None when the program never ran or was killed with everything else.
    """

    exit_code: int | None
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Status:
    """One line of bubblewrap's status pipe; what it does not say is None."""

    child_pid: int | None = None
    exit_code: int | None = None


def parse_status(line: bytes) -> Status:
    """Read one line. The program's own doing is behind the exit code: init has an address space that it can write."""
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return Status()
    if not isinstance(report, dict):
        return Status()
    pid, code = report.get("child-pid"), report.get("exit-code")
    return Status(
        child_pid=pid if type(pid) is int and 0 < pid <= _PID_MAX else None,
        exit_code=code & 255 if type(code) is int else None,
    )


@dataclass(slots=True)
class Pipes:
    """This side's ends; `stdin` is None when the program reads from /dev/null, `set_up` once that is over."""

    set_up: int | None
    stdin: int | None
    stdout: int
    stderr: int
    status: int
    extra: list[int] = field(default_factory=list)

    def close(self) -> None:
        """Close what is still open."""
        for fd in (self.set_up, self.stdin, self.stdout, self.stderr, self.status, *self.extra):
            if fd is not None:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self.set_up, self.stdin, self.extra = None, None, []


class Process:
    """A launched bubblewrap. `kill` may be called from any thread, the rest from the one that supervises."""

    def __init__(self, popen: subprocess.Popen[bytes], pipes: Pipes) -> None:
        self.pipes, self.pid = pipes, popen.pid
        self.exited = os.pidfd_open(popen.pid)
        self.kill_reason: Reason | None = None
        self.init_pid: int | None = None
        self.status_closed = False
        self._popen, self._init = popen, -1
        self._exit_code: int | None = None
        self._status = b""
        self._lock = threading.Lock()
        self._finished = False
        self._killed_at = self._killed_cpu_s = 0.0

    def take_status(self) -> None:
        """Read what bubblewrap reports: the pid of the sandbox's init, and later the program's exit code."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.pipes.status, 4096):
                self._status += chunk
            self.status_closed = True
        *lines, rest = self._status.split(b"\n")
        self._status = rest[:_LINE_BYTES]
        for line in lines:
            report = parse_status(line)
            if report.exit_code is not None:
                self._exit_code = report.exit_code
            if report.child_pid is not None:
                self._watch_init(report.child_pid)

    def wait_set_up(self) -> None:
        """Wait until the program itself runs, or bubblewrap has ended, or was to be killed and does not end."""
        poll = select.poll()
        for fd in (self.exited, self.pipes.set_up, self.pipes.status):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        ready: set[int] = set()
        while not ready & {self.exited, self.pipes.set_up} and not self.overdue():
            ready = {fd for fd, _ in poll.poll(100)}
            if self.pipes.status in ready:
                self.take_status()
                if self.status_closed:
                    poll.unregister(self.pipes.status)
                    ready.discard(self.pipes.status)
            if self.pipes.set_up in ready and os.read(self.pipes.set_up, 4096):  # a report, not yet the end
                ready.discard(self.pipes.set_up)
        if self.pipes.set_up is not None:
            os.close(self.pipes.set_up)
            self.pipes.set_up = None

    def kill(self, reason: Reason) -> None:
        """Kill everything in the sandbox; the first reason given stays."""
        with self._lock:
            if self._finished or self.kill_reason is not None:
                return
            self.kill_reason, self._killed_at = reason, time.monotonic()
            if self.init_pid is not None:
                self._killed_cpu_s = proctree.cpu_s_beneath(self.init_pid)
            # Until its init is known, bubblewrap is still setting up and would leave a half-made child behind:
            # the kill follows in `_watch_init`, or in `wait` after a grace period.
            self._kill_init()

    def wait(self) -> End:
        """Wait until nothing of it is left, killing what the program left running, and close its side channels.

        Raises:
            SandboxLost: something survives SIGKILL.
        """
        try:
            self._wait_outer()
            self.take_status()
            if self._init >= 0:
                self._kill_init()
                if not _ready(self._init, _DEATH_S):
                    raise SandboxLost(f"processes of the sandbox (init {self.init_pid}) survive SIGKILL")
        finally:
            cpu_s = self._reap()
            with self._lock:
                self._finished = True
                for fd in (self.exited, self._init):
                    if fd >= 0:
                        os.close(fd)
                self.exited = self._init = -1
        return End(self._exit_code, cpu_s)

    def overdue(self) -> bool:
        """Whether a kill was asked for so long ago that bubblewrap itself must be killed."""
        return self.kill_reason is not None and time.monotonic() - self._killed_at > _GRACE_S

    def _wait_outer(self) -> None:
        started, forced = time.monotonic(), False
        while not self._outer_gone():
            waited_s = time.monotonic() - started
            if waited_s > _DEATH_S:
                raise SandboxLost(f"bubblewrap (pid {self.pid}) survives SIGKILL")
            if not forced and waited_s > _GRACE_S:
                signal.pidfd_send_signal(self.exited, signal.SIGKILL)
                forced = True

    def _outer_gone(self) -> bool:
        """Wait a moment for its end; news of the init, which a kill may be waiting for, is taken on the way."""
        poll = select.poll()
        poll.register(self.exited, select.POLLIN)
        if not self.status_closed:
            poll.register(self.pipes.status, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(100)}
        if self.pipes.status in ready:
            self.take_status()
        return self.exited in ready

    def _reap(self) -> float:
        try:
            _, status, usage = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:  # another part of the harness reaps all children
            self._popen.returncode = 0
            return 0.0
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime + self._killed_cpu_s

    def _watch_init(self, pid: int) -> None:
        with self._lock:
            try:
                self._init = os.pidfd_open(pid)
            except (
                OSError
            ):  # it came and went, and everything in its pid namespace with it; or it is no process
                return
            if not _is_inner_init(pid):
                os.close(self._init)
                self._init = -1
                return
            self.init_pid = pid
            if self.kill_reason is not None:
                self._kill_init()

    def _kill_init(self) -> None:
        if self._init >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)


def spawn(
    command: Callable[[int], Sequence[str]],
    *,
    folder: str,
    arguments: Callable[[int, int, int], bytes],
    seccomp: bytes | None,
    with_stdin: bool,
    extra: Sequence[int] = (),
) -> Process:
    """Start bubblewrap; call it in the launcher's thread.

    Args:
        command: From the descriptor of the argument list to the command line.
        folder: Working directory, which holds `bwrap`.
        arguments: From the descriptors of the status pipe, of the set-up pipe and of the filter (-1: none) to the
            argument list.
        seccomp: The filter.
        with_stdin: Whether to open a pipe to its standard input.
        extra: Descriptors that the program inherits.

    Raises:
        OSError: the process cannot be started.
    """
    with ExitStack() as theirs, ExitStack() as ours:
        out, out_w = _pipe(ours, theirs)
        err, err_w = _pipe(ours, theirs)
        status, status_w = _pipe(ours, theirs)
        set_up, set_up_w = _pipe(ours, theirs)
        stdin, stdin_w = (subprocess.DEVNULL, None) if not with_stdin else _pipe(theirs, ours)
        filter_fd = memory_file(theirs, seccomp) if seccomp is not None else -1
        list_fd = memory_file(theirs, arguments(status_w, set_up_w, filter_fd))
        popen = subprocess.Popen(
            command(list_fd),
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "LANG": "C"},
            stdin=stdin,
            stdout=out_w,
            stderr=err_w,
            pass_fds=[fd for fd in (status_w, set_up_w, filter_fd, list_fd, *extra) if fd >= 0],
            start_new_session=True,
            umask=0o022,
        )
        ours.pop_all()
        for fd in (out, err, status, set_up, stdin_w):
            if fd is not None:
                os.set_blocking(fd, False)
        return Process(popen, Pipes(set_up, stdin_w, out, err, status))


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def memory_file(stack: ExitStack, data: bytes) -> int:
    """A file without a name that holds `data`, at its start; closed with the stack."""
    fd = os.memfd_create("sandbox")
    stack.callback(os.close, fd)
    os.pwrite(fd, data, 0)
    return fd


def _ready(fd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))


def _is_inner_init(pid: int) -> bool:
    """Whether a pid is still what bubblewrap meant by it: the first process of a pid namespace below this one."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in text.splitlines() if line.startswith("NSpid:")), [])
    return len(numbers) >= 2 and numbers[-1] == "1"

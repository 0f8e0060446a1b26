"""One program started in a container: its stream, its pid on the host, its limits, and how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.capture import HeadTail
from sandbox.docker_container import Container
from sandbox.docker_daemon import Daemon
from sandbox.docker_frames import Frames
from sandbox.docker_pipes import ShellPipes
from sandbox.errors import SandboxLost
from sandbox.types import Limits, Reason

_CHUNK = 1 << 16
_LOOK_S = 0.004  # how often the daemon is asked for the pid until it knows it
_NEWS_S = 0.25
_DRAIN_S = 2.0
_END_S = 10.0
_MAX_NOTICE = 1 << 16


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to start."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    with_stdin: bool


class Program:
    """A started program. `kill` may be called from any thread, the rest from the one that supervises.

    A shell has `pipes` of its own, which it uses instead of the daemon's stream once it runs.

    Raises:
        SandboxLost: the daemon failed.
    """

    def __init__(
        self,
        daemon: Daemon,
        container: Container,
        wanted: Wanted,
        limits: Limits,
        pipes: ShellPipes | None = None,
    ) -> None:
        self._daemon, self._limits, self._pipes = daemon, limits, pipes
        self.stdout, self.stderr = HeadTail(limits.max_output_bytes), HeadTail(limits.max_output_bytes)
        self.noticed = bytearray()
        self.kill_reason: Reason | None = None
        self.pid: int | None = None
        self.own_system = container.image
        """Whether programs may change what starts them."""
        self._pidfd = -1
        self._frames = Frames()
        self._folder = container.running.folder
        with daemon.call("preparing a program") as api:
            self._id: str = api.exec_create(
                container.id,
                list(wanted.words),
                stdin=wanted.with_stdin,
                environment=dict(wanted.env),
                workdir=wanted.cwd,
                user=container.user,
            )["Id"]
        self._stream, first = daemon.open_stream(f"/exec/{self._id}/start", {"Detach": False, "Tty": False})
        self._open, self._over, self._feeding = True, False, wanted.with_stdin
        self._take(first)

    @property
    def started(self) -> bool:
        """Whether the program ever ran, by what the daemon knows of its pid."""
        return self.pid is not None

    @property
    def running(self) -> bool:
        """Whether it runs, as far as is known."""
        return self.started and not self._over

    def renew(self) -> None:
        """Start new captures and forget what was noticed, for a shell's next command."""
        self.stdout = HeadTail(self._limits.max_output_bytes)
        self.stderr = HeadTail(self._limits.max_output_bytes)
        self.noticed.clear()

    def locate(self, timeout_s: float) -> bool:
        """Wait until the daemon knows the pid, or that there is none; whether it came to one of both in time.

        Raises:
            SandboxLost: the daemon failed.
        """
        until = time.monotonic() + timeout_s
        while not (self.started or self._over):
            self._look()
            if time.monotonic() > until:
                break
            if not (self.started or self._over):
                self._wait(_LOOK_S, ())
        return self.started or self._over

    def kill(self, reason: Reason) -> None:
        """Kill the program itself; the first reason given stays. `end` sees to what it started."""
        if self.kill_reason is None:
            self.kill_reason = reason
        if self._pidfd >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def run(
        self,
        timeout_s: float,
        stdin: bytes = b"",
        *,
        keep_open: bool = False,
        done: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Pass bytes on until the program ended (returns True) or `done` says so (returns False).

        Every limit kills the program. Standard input is closed behind the bytes, unless it is to be kept open.
        """
        rest, started = memoryview(stdin), time.monotonic()
        active, idle_s = started, self._limits.idle_timeout_s
        while True:
            until = started + timeout_s if idle_s is None else min(started + timeout_s, active + idle_s)
            wait_s = min(max(0.0, until - time.monotonic()), _LOOK_S if self.pid is None else _NEWS_S)
            seen = self.stdout.total_bytes + self.stderr.total_bytes
            rest = self._turn(0.05 if self.kill_reason else wait_s, rest)
            if not rest and not keep_open:
                self._end_input()
            if self._over:
                return True
            if done():
                return False
            total, now = self.stdout.total_bytes + self.stderr.total_bytes, time.monotonic()
            active = now if total > seen else active
            if total > self._limits.kill_output_bytes:
                self.kill("output")
            elif now - started >= timeout_s:
                self.kill("timeout")
            elif idle_s is not None and now - active >= idle_s:
                self.kill("idle_timeout")

    def end(self, kill_rest: Callable[[], None]) -> int | None:
        """Kill the program and the rest, take the last output and return the exit code, None if there is none.

        Raises:
            SandboxLost: the daemon lost it, or something survives.
        """
        try:
            self.locate(_END_S)
            if not self._over and self._pidfd >= 0:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            kill_rest()
            until = time.monotonic() + _DRAIN_S
            while self._open and time.monotonic() < until:
                self._wait(0.05, ())
            self.take()
            return self._exit_code()
        finally:
            self._stream.close()
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1

    def take(self) -> None:
        """Take what a shell's command has written; what else runs may write faster than this reads."""
        for _ in range(32):
            if not self._take_pipes():
                break

    def _turn(self, wait_s: float, rest: memoryview) -> memoryview:
        if self.pid is None:
            self._look()
            if self.kill_reason is not None:
                self.kill(self.kill_reason)
        extra = [(self._pidfd, select.POLLIN)] if self._pidfd >= 0 else []
        if (pipes := self._pipes) is not None:
            extra += [(fd, select.POLLIN) for fd in (pipes.stdout, pipes.stderr, pipes.notice)]
            extra += [(pipes.stdin, select.POLLOUT)] if rest else []
        ready = self._wait(wait_s, extra, writing=len(rest) > 0 and pipes is None)
        if self._pidfd in ready:
            self._over = True
        if pipes is not None:
            self._take_pipes()
            if pipes.notice in ready:
                self._take_notice(pipes.notice)
        return self._feed(rest) if rest else rest

    def _wait(self, wait_s: float, extra: Sequence[tuple[int, int]], *, writing: bool = False) -> set[int]:
        """Wait for news and take what came on the stream; returns the ready descriptors."""
        poll = select.poll()
        if self._open:
            poll.register(self._stream, select.POLLIN | (select.POLLOUT if writing else 0))
        for fd, events in extra:
            poll.register(fd, events)
        ready = {fd for fd, _ in poll.poll(wait_s * 1000 + 0.5)}
        if self._open and self._stream.fileno() in ready:
            try:
                data = self._stream.recv(_CHUNK)
            except BlockingIOError:
                return ready
            except OSError:
                data = b""
            self._open = bool(data)
            self._take(data)
        return ready

    def _take(self, data: bytes) -> None:
        for kind, part in self._frames.take(data):
            (self.stderr if kind == 2 else self.stdout).add(part)

    def _take_pipes(self) -> bool:
        """Take a little of what stands in a shell's pipes; whether there was any."""
        if self._pipes is None:
            return False
        before = self.stdout.total_bytes + self.stderr.total_bytes
        for fd, capture in ((self._pipes.stdout, self.stdout), (self._pipes.stderr, self.stderr)):
            with contextlib.suppress(BlockingIOError):
                capture.add(os.read(fd, _CHUNK))
        return self.stdout.total_bytes + self.stderr.total_bytes > before

    def _feed(self, rest: memoryview) -> memoryview:
        if self._pipes is None and not self._open:
            return rest[:0]
        try:
            if self._pipes is not None:
                return rest[os.write(self._pipes.stdin, rest[:_CHUNK]) :]
            return rest[self._stream.send(rest[:_CHUNK]) :]
        except BlockingIOError:
            return rest
        except OSError:  # it reads no more
            return rest[:0]

    def _end_input(self) -> None:
        if not self._feeding:
            return
        self._feeding = False
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_WR)

    def _take_notice(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, _CHUNK)
            if len(self.noticed) < _MAX_NOTICE:  # a program that floods it waits for its own deadline
                self.noticed += data

    def _look(self) -> None:
        """Ask the daemon for the pid, and pin it if the process is still the one that was meant."""
        seen = self._inspect()
        if seen["Pid"]:
            pid = int(seen["Pid"])
            with contextlib.suppress(OSError):
                self._pidfd = os.pidfd_open(pid)
                if str(pid) not in (self._folder / "cgroup.procs").read_text().split():
                    os.close(self._pidfd)
                    self._pidfd = -1
            self.pid = pid
        if (not seen["Running"] and seen["ExitCode"] is not None) or (self.pid and self._pidfd < 0):
            self._over = True

    def _exit_code(self) -> int | None:
        until = time.monotonic() + _END_S
        while (seen := self._inspect())["Running"] or seen["ExitCode"] is None:
            if time.monotonic() > until:
                raise SandboxLost(f"docker does not say how a program (pid {self.pid}) ended")
            time.sleep(0.002)
        return int(seen["ExitCode"])

    def _inspect(self) -> dict[str, Any]:
        with self._daemon.call("looking at a program") as api:
            seen: dict[str, Any] = api.exec_inspect(self._id)
        return seen

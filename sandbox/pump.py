"""Moving bytes between a running sandbox and this process, under a deadline."""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable

from sandbox.capture import HeadTail
from sandbox.process import Process
from sandbox.types import Limits

_CHUNK = 1 << 16
_DRAIN_CHUNKS = 32  # a pipe holds at most 1 MiB
_GLANCE_S = 0.002


class Pump:
    """Feeds standard input and captures output until told to stop, the program ends or a limit strikes.

    With a `notice` descriptor, which a shell has, standard input stays open after the bytes are fed.

    Every limit kills the sandbox through `process.kill` with its reason; what follows is the caller's to read from
    `process.kill_reason`.
    """

    def __init__(
        self, process: Process, limits: Limits, stdin: bytes = b"", notice: int | None = None
    ) -> None:
        self._keep_stdin = notice is not None
        self._process, self._limits, self._notice = process, limits, notice
        self._stdin = memoryview(stdin)
        self.stdout, self.stderr = HeadTail(limits.max_output_bytes), HeadTail(limits.max_output_bytes)
        self.noticed = bytearray()
        """What came on the `notice` descriptor."""
        self._captures = {process.pipes.stdout: self.stdout, process.pipes.stderr: self.stderr}
        self._poll: select.poll | None = None

    def run(self, timeout_s: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Pump until the program ended (returns True) or `done` says so after some bytes came (returns False)."""
        started = active = time.monotonic()
        if self._glance(timeout_s) and done():
            return False
        idle_s = self._limits.idle_timeout_s
        self._poll = poll = self._polled()
        while True:
            until = started + timeout_s if idle_s is None else min(started + timeout_s, active + idle_s)
            wait_s = 0.1 if self._process.kill_reason else max(0.0, until - time.monotonic())
            events = poll.poll(min(wait_s, 3600.0) * 1000 + 1)
            wrote = [self._serve(fd) for fd, _ in events]
            if self._process.exited in {fd for fd, _ in events} or self._process.overdue():
                return True
            if done():
                return False
            # Only now: a program that ended in time must not pay for a harness that looked late.
            now = time.monotonic()
            active = now if any(wrote) else active
            if now - started >= timeout_s:
                self._process.kill("timeout")
            elif idle_s is not None and now - active >= idle_s:
                self._process.kill("idle_timeout")

    def drain(self) -> None:
        """Take what is left in the pipes without waiting for more."""
        for fd in list(self._captures):
            for _ in range(_DRAIN_CHUNKS):  # a background job may write faster than this reads
                if self._capture(fd) < _CHUNK:  # a pipe gives all that it has, up to what was asked for
                    break

    def _glance(self, timeout_s: float) -> bool:
        """Feed a shell and wait a moment for its notice alone; whether it came.

        Most commands are over by then, and are left to write all that they have without a wake-up for each piece.
        """
        stdin, notice = self._process.pipes.stdin, self._notice
        if stdin is None or notice is None or timeout_s < _GLANCE_S:
            return False
        self._feed(stdin)
        if self._stdin:
            return False
        poll = select.poll()
        poll.register(notice, select.POLLIN)
        poll.register(self._process.exited, select.POLLIN)
        if all(fd != notice for fd, _ in poll.poll(_GLANCE_S * 1000)):
            return False
        self._take_notice(notice)
        return True

    def _polled(self) -> select.poll:
        pipes, poll = self._process.pipes, select.poll()
        for fd in (*self._captures, pipes.status, self._process.exited, self._notice):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        if pipes.stdin is not None and (self._stdin or not self._keep_stdin):
            poll.register(pipes.stdin, select.POLLOUT)
        return poll

    def _forget(self, fd: int) -> None:
        if self._poll is not None:
            with contextlib.suppress(KeyError):
                self._poll.unregister(fd)

    def _serve(self, fd: int) -> bool:
        """Handle one ready descriptor; whether the program wrote something."""
        pipes = self._process.pipes
        if fd in self._captures:
            return self._capture(fd) > 0
        if fd == pipes.stdin:
            self._feed(fd)
        elif fd == pipes.status:
            self._process.take_status()
            if self._process.status_closed:
                self._forget(fd)
        elif fd == self._notice:
            self._take_notice(fd)
        return False

    def _capture(self, fd: int) -> int:
        """Take one chunk; how many bytes came."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            self._forget(fd)
            del self._captures[fd]
            return 0
        self._captures[fd].add(data)
        if self.stdout.total_bytes + self.stderr.total_bytes > self._limits.kill_output_bytes:
            self._process.kill("output")
        return len(data)

    def _feed(self, fd: int) -> None:
        try:
            while self._stdin:
                self._stdin = self._stdin[os.write(fd, self._stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            pass
        self._forget(fd)
        if not self._keep_stdin:
            self._process.pipes.stdin = None
            os.close(fd)

    def _take_notice(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, _CHUNK)
            self.noticed += data
            if not data or len(self.noticed) > _CHUNK:  # closed, or flooded by the program
                self._forget(fd)
                self._notice = None

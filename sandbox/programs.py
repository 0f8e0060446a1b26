"""Launching programs in one sandbox, and making sure that none is left."""

from __future__ import annotations

import errno
import functools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from sandbox import files, launch
from sandbox.cgroups import Cgroup
from sandbox.conclude import Counters, Evidence, conclude
from sandbox.errors import SandboxClosed, SandboxLost
from sandbox.family import Family
from sandbox.machine import Machine
from sandbox.network.gate import Gate
from sandbox.process import End, Process, spawn
from sandbox.pump import Pump
from sandbox.types import ExecResult, SandboxSpec

_MAX_WORD_BYTES, _MAX_WORDS_BYTES = (1 << 17) - 1, 3 << 19


class Programs:
    """All launches of one sandbox. `stop` may be called from any thread."""

    def __init__(self, machine: Machine, spec: SandboxSpec, family: Family) -> None:
        self._machine, self._spec, self._family = machine, spec, family
        self.limits = spec.limits
        self.cgroup: Cgroup | None = None
        self.gate: Gate | None = None
        self.evidence = Evidence(disk_full=lambda: False, processes_full=self._processes_full)
        self._running: set[Process] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def start(
        self,
        argv: Sequence[str],
        workspace: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        with_stdin: bool = False,
        extra: Sequence[int] = (),
    ) -> Process:
        """Launch a program and return when it runs; the caller supervises it and calls `end`.

        `workspace` are the arguments that mount it; `extra` are descriptors that the program inherits.

        Raises:
            SandboxClosed: `stop` was called.
            SandboxLost: the launch failed.
            ValueError: see `sandbox.base.Sandbox.exec`.
        """
        words, folder = checked_argv(argv), "/".join(files.components(cwd))
        before, machine = self._host_command(), self._machine
        added = dict(env or {})
        if self.gate is not None:
            words, workspace = self.gate.wrap(words), [*workspace, *self.gate.mounts]
            added = {**self.gate.env, **added}
        arguments = functools.partial(
            launch.arguments,
            etc=machine.etc,
            limits=self.limits,
            workspace=workspace,
            cwd=folder,
            env={**self._spec.env, **added},
        )

        def launch_it() -> Process:
            return spawn(
                lambda list_fd: [*before, "./bwrap", "--args", str(list_fd), "--", *words],
                folder=machine.bin,
                arguments=lambda status, set_up, seccomp: arguments(
                    status_fd=status, set_up_fd=set_up, seccomp_fd=seccomp
                ),
                seccomp=machine.seccomp,
                with_stdin=with_stdin,
                extra=extra,
            )

        return self._started(launch_it)

    def _started(self, launch_it: Callable[[], Process]) -> Process:
        """Call it in the launcher's thread and return when the program runs."""

        def go() -> Process:
            process = launch_it()
            with self._lock:  # here, so that an interrupt of the waiting thread cannot lose it
                self._running.add(process)
            return process

        # Namespaces and mounts are made under locks of the whole kernel: hundreds at once hinder one another, and
        # programs would use up their time before they run.
        with self._machine.launches:
            process = self._launch(go)
            if self._stopped:
                process.kill("killed")
            try:
                process.wait_set_up()
            except BaseException:  # an interrupt
                process.kill("killed")
                self.end(process)
                raise
        return process

    def run(
        self,
        argv: Sequence[str],
        workspace: Sequence[str],
        *,
        stdin: bytes,
        env: Mapping[str, str] | None,
        cwd: str,
        timeout_s: float | None,
    ) -> ExecResult:
        """Launch a program and see it to its end.

        Raises:
            As `start` and `conclude`.
        """
        started, counters = time.monotonic(), Counters.start(self.cgroup)
        process = self.start(argv, workspace, env=env, cwd=cwd, with_stdin=bool(stdin))
        pump = Pump(process, self.limits, stdin)
        try:
            pump.run(self.limits.timeout_s if timeout_s is None else timeout_s)
        except BaseException:
            process.kill("killed")
            raise
        finally:
            end = self.end(process, pump)
        return self.conclude(end, process, pump, counters, started, cwd)

    def conclude(
        self, end: End, process: Process, pump: Pump, counters: Counters, started: float, cwd: str = "."
    ) -> ExecResult:
        """The result of a launch that is over; `started` is when, on the monotonic clock.

        Raises:
            As `conclude.conclude`.
        """
        wall_s = time.monotonic() - started
        return conclude(end, process.kill_reason, pump, counters, self.evidence, wall_s, cwd)

    def end(self, process: Process, pump: Pump | None = None) -> End:
        """Wait until nothing of a launch is left and take its last output.

        Raises:
            SandboxLost: something survives SIGKILL.
        """
        try:
            end = process.wait()
            if pump is not None:
                pump.drain()
            return end
        finally:
            with self._lock:
                self._running.discard(process)
            process.pipes.close()

    def stop(self) -> None:
        """Kill everything, and refuse what comes."""
        self._stopped = True
        with self._lock:
            running = list(self._running)
        for process in running:
            process.kill("killed")

    def close(self) -> None:
        """End what an interrupt left without a supervisor."""
        self.stop()
        for process in list(self._running):
            self.end(process)

    def _launch(self, go: Callable[[], Process]) -> Process:
        if self._stopped:
            raise SandboxClosed("the sandbox was closed; create another")
        try:
            return self._machine.launcher.call(go)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise ValueError(
                    "argv is too long for the kernel; pass large data by stdin or a file"
                ) from error
            raise SandboxLost(f"the sandbox cannot be launched: {error}") from error

    def _processes_full(self) -> bool:
        if self.cgroup is not None and self.cgroup.pids is not None:
            return False  # its counter has told already
        return self._family.at_process_bound(self.limits.processes)

    def _host_command(self) -> list[str]:
        machine, group = self._machine, self.cgroup
        return launch.host_command(
            machine.tools,
            self.limits,
            uid=self._family.uid,
            cgroup_files=group.procs_files if group else (),
            address_space=group is None or group.memory is None,
            processes=None if group and group.pids else self._family.process_bound(self.limits.processes),
        )


def checked_argv(argv: Sequence[str]) -> list[str]:
    """The words of a program.

    Raises:
        ValueError: there is none, or one has a NUL byte.
    """
    words = [] if isinstance(argv, str) else list(argv)
    if not words or not words[0] or any("\0" in word for word in words):
        raise ValueError(f"argv must be a non-empty list of strings without NUL bytes, not {argv!r:.200}")
    if not all(map(launch.encodable, words)):
        raise ValueError(f"argv contains a lone surrogate, which UTF-8 cannot encode: {argv!r:.200}")
    if len(words) > launch.MAX_WORDS:
        raise ValueError(
            f"argv is too long: {len(words)} words, at most {launch.MAX_WORDS}; pass large data by stdin or a file"
        )
    return words


def through_env(words: list[str]) -> list[str]:
    """A command line that the kernel takes, with `env` in front, which gives 127 and 126 where it cannot be run.

    Raises:
        ValueError: it is too long.
    """
    sizes = [len(os.fsencode(word)) for word in words]
    if max(sizes) > _MAX_WORD_BYTES or sum(sizes) > _MAX_WORDS_BYTES:
        raise ValueError("argv is too long for the kernel; pass large data by stdin or a file")
    if "=" in words[0]:  # a variable to env
        return ["/usr/bin/env", "--", "sh", "-c", 'exec "$0" "$@"', *words]
    return ["/usr/bin/env", "--", *words]

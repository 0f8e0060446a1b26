"""Launching programs under gVisor: runsc within bubblewrap, which ends them as it ends its own."""

from __future__ import annotations

import contextlib
import functools
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sandbox import files, gvisor_bundle, launch, seccomp
from sandbox.conclude import Counters, conclude
from sandbox.errors import SandboxLost
from sandbox.gvisor_family import GvisorFamily
from sandbox.machine import Machine
from sandbox.process import End, Process, memory_file, spawn
from sandbox.programs import Programs, checked_argv, through_env
from sandbox.pump import Pump
from sandbox.types import ExecResult, Reason, SandboxSpec

_RUNNER_FILES, _UNBOUNDED = 8192, 1 << 50
_LOG_BYTES = 1 << 14
_RUNSC_FAILED = 128
_NOT_MADE = "running container: creating container"


class GvisorPrograms(Programs):
    """All launches of one sandbox; each has a gVisor kernel of its own."""

    def __init__(self, machine: Machine, spec: SandboxSpec, family: GvisorFamily, runsc: str) -> None:
        super().__init__(machine, spec, family)
        self._namespace, self._runsc = family.namespace, runsc
        self._filter = seccomp.program(spare=gvisor_bundle.SPARED)
        self._logs: weakref.WeakKeyDictionary[Process, bytes] = weakref.WeakKeyDictionary()
        self._open_logs: dict[Process, int] = {}
        # The limits of programs are gVisor's to keep: its own files and memory are not to be cut by them.
        self._runner_limits = replace(spec.limits, open_files=_RUNNER_FILES, file_bytes=_UNBOUNDED)

    def start(
        self,
        argv: Sequence[str],
        workspace: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        with_stdin: bool = False,
        extra: Sequence[int] = (),
        notices: str | None = None,
    ) -> Process:
        """See `Programs.start`; `notices` is a host folder of named pipes, shown as `/run`."""
        words, folder = through_env(checked_argv(argv)), "/".join(files.components(cwd))
        added = {**self._spec.env, **(env or {})}
        bundle = gvisor_bundle.config(words, folder, added, self.limits, notices=notices is not None)
        before, machine = self._host_command(), self._machine
        with contextlib.ExitStack() as opened:
            config_fd = memory_file(opened, bundle)
            log_fd = os.memfd_create("runsc-log")
            opened.callback(os.close, log_fd)
            arguments = functools.partial(
                gvisor_bundle.arguments,
                runsc=self._runsc,
                etc=machine.etc,
                workspace=workspace,
                notices=notices,
                namespace_fd=self._namespace,
                config_fd=config_fd,
            )
            runner = gvisor_bundle.command(log_fd, open_fifos=notices is not None)

            def launch_it() -> Process:
                return spawn(
                    lambda list_fd: [*before, "./bwrap", "--args", str(list_fd), "--", *runner],
                    folder=machine.bin,
                    arguments=lambda status, set_up, filter_fd: arguments(
                        status_fd=status, set_up_fd=set_up, seccomp_fd=filter_fd
                    ),
                    seccomp=self._filter,
                    with_stdin=with_stdin,
                    extra=(*extra, self._namespace, config_fd, log_fd),
                )

            process = self._started(launch_it)
            self._open_logs[process] = os.dup(log_fd)
        return process

    def end(self, process: Process, pump: Pump | None = None) -> End:
        """See `Programs.end`."""
        try:
            return super().end(process, pump)
        finally:
            if (log := self._open_logs.pop(process, None)) is not None:
                self._logs[process] = os.pread(log, _LOG_BYTES, 0)
                os.close(log)

    def conclude(
        self, end: End, process: Process, pump: Pump, counters: Counters, started: float, cwd: str = "."
    ) -> ExecResult:
        """See `Programs.conclude`. What runsc itself says stands in a file that no program can reach.

        A container that could not be made is a fault, unless a limit explains it: no program has run yet. A kernel
        that died later may have been made to, and that is `killed`.
        """
        said = self._logs.pop(process, b"").decode("utf-8", "replace").strip()
        killed = process.kill_reason
        if killed is None and (end.exit_code is None or (end.exit_code == _RUNSC_FAILED and said)):
            killed = self._failure(end, said, pump, counters)
        wall_s = time.monotonic() - started
        return conclude(end, killed, pump, counters, self.evidence, wall_s, cwd)

    def _failure(self, end: End, said: str, pump: Pump, counters: Counters) -> Reason:
        if end.exit_code is not None and _NOT_MADE not in said:
            limit = counters.reason()
            return "killed" if limit == "ok" else limit
        if (refused := self.evidence.not_started(counters)) is not None:
            return refused
        said = said or pump.stderr.output().text.strip() or "no message"
        raise SandboxLost(f"runsc did not run the program: {said[:500]}")

    def _host_command(self) -> list[str]:
        group = self.cgroup
        return launch.host_command(
            self._machine.tools,
            self._runner_limits,
            uid=self._family.uid,
            cgroup_files=group.procs_files if group else (),
            address_space=False,
            processes=None,
        )

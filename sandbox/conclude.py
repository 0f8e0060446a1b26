"""From what was seen outside a sandbox to a result: the text that a program wrote never decides it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

from sandbox import files
from sandbox.cgroups import Cgroup
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.process import End
from sandbox.pump import Pump
from sandbox.types import ExecResult, Output, Reason, Usage

_EXEC_FAILED, _CHDIR_FAILED = b"bwrap: execvp ", b"bwrap: Can't chdir to "
_ABSENT = b"No such file or directory"


@dataclass(frozen=True, slots=True)
class Counters:
    """The group's counters before a program runs, to be compared with those after it."""

    group: Cgroup | None
    oom_kills: int = 0
    pids_refusals: int = 0
    memory_refusals: int = 0

    @classmethod
    def start(cls, group: Cgroup | None, *, refusals: int | None = None) -> Counters:
        """Read them and start a new peak; `refusals` of memory are known where they matter for the start only."""
        if group is None:
            return cls(None)
        group.reset_peak()
        if refusals is None:
            refusals = group.memory_refusals()
        return cls(group, group.oom_kills(), group.pids_refusals(), refusals)

    def reason(self) -> Reason:
        """Which total was hit since, if any."""
        if self.group is None:
            return "ok"
        if self.group.oom_kills() > self.oom_kills:
            return "oom"
        return "pids" if self.group.pids_refusals() > self.pids_refusals else "ok"

    def at_memory_limit(self) -> bool:
        """Whether the group met its memory limit since: an allocation may then fail without a kill."""
        return self.group is not None and self.group.memory_refusals() > self.memory_refusals

    def usage(self, wall_s: float, cpu_s: float) -> Usage:
        """Use since; the memory peak counts files in tmpfs, and is 0 without a memory group."""
        return Usage(wall_s=wall_s, cpu_s=cpu_s, max_rss_bytes=self.group.peak_bytes() if self.group else 0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What else can be seen from outside: whether the workspace is full, and the user's number of processes."""

    disk_full: Callable[[], bool]
    processes_full: Callable[[], bool]

    def failed(self, code: int) -> Reason:
        """Why a program that ended with `code`, no other limit having been met, may have failed."""
        return "disk" if code != 0 and self.disk_full() else "ok"

    def not_started(self, counters: Counters) -> Reason | None:
        """Which limit kept a program from starting, if one did."""
        if (reason := counters.reason()) != "ok":
            return reason
        if counters.at_memory_limit():
            return "oom"
        if self.processes_full():
            return "pids"
        return "disk" if self.disk_full() else None


def exit_code(shown: int) -> int:
    """Bubblewrap and bash show a death by signal n as 128 + n; an own exit with such a code reads the same."""
    number = shown - 128
    return -number if number > 0 and number in signal.valid_signals() else shown


def conclude(
    end: End,
    killed: Reason | None,
    pump: Pump,
    counters: Counters,
    evidence: Evidence,
    wall_s: float,
    cwd: str,
) -> ExecResult:
    """The result of a launch that is over.

    Raises:
        SandboxLost: bubblewrap did not start the program, and no limit of the sandbox explains it.
        SandboxPathError: `cwd` is not a folder that can be entered.
    """
    out, err = pump.stdout.output(), pump.stderr.output()
    usage, reason = counters.usage(wall_s, end.cpu_s), counters.reason()
    if killed is not None:
        return ExecResult(exit_code=None, stdout=out, stderr=err, reason=killed, usage=usage)
    if end.exit_code is not None:
        code = exit_code(end.exit_code)
        mine = None if reason == "oom" and code == -signal.SIGKILL else code
        if reason == "ok":
            reason = evidence.failed(code)
        return ExecResult(exit_code=mine, stdout=out, stderr=err, reason=reason, usage=usage)
    if reason == "oom":
        return ExecResult(exit_code=None, stdout=out, stderr=err, reason=reason, usage=usage)
    # No program of this launch ran, so what stands on its standard error is bubblewrap's.
    if err.head.startswith(_EXEC_FAILED):
        code = 127 if err.head.rstrip().endswith(_ABSENT) else 126
        return not_run(code, err.head.removeprefix(_EXEC_FAILED), usage)
    if err.head.startswith(_CHDIR_FAILED):
        if not files.components(cwd):  # a program took its permissions away
            return not_run(126, err.head.removeprefix(b"bwrap: "), usage)
        raise SandboxPathError(f"cwd {cwd!r} is not a folder that can be entered; create it first")
    if (limit := evidence.not_started(counters)) is not None:
        return ExecResult(exit_code=None, stdout=Output(), stderr=Output(), reason=limit, usage=usage)
    raise SandboxLost(f"bubblewrap did not run the program: {err.text.strip()[:500] or 'no message'}")


def not_run(code: int, text: bytes, usage: Usage) -> ExecResult:
    """The result of a program that did not run, for a reason of the program's own: 126 or 127, and what is said."""
    err = Output(head=text, total_bytes=len(text))
    return ExecResult(exit_code=code, stdout=Output(), stderr=err, reason="ok", usage=usage)

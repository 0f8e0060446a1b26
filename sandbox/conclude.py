"""From what was seen outside a sandbox to a result: the text that a program wrote never decides it."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from sandbox.cgroups import Cgroup
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.process import End
from sandbox.pump import Pump
from sandbox.types import ExecResult, Output, Reason, Usage

_EXEC_FAILED, _CHDIR_FAILED = b"bwrap: execvp ", b"bwrap: Can't chdir to "
_ABSENT = b"No such file or directory"
_RAN_OUT: dict[bytes, Reason] = {
    b"Resource temporarily unavailable": "pids",
    b"Cannot allocate memory": "oom",
    b"No space left on device": "disk",
    b"Disk quota exceeded": "disk",
}


@dataclass(frozen=True, slots=True)
class Counters:
    """The group's counters before a program runs, to be compared with those after it."""

    group: Cgroup | None
    oom_kills: int = 0
    pids_refusals: int = 0

    @classmethod
    def start(cls, group: Cgroup | None) -> Counters:
        """Read them and start a new peak."""
        if group is None:
            return cls(None)
        group.reset_peak()
        return cls(group, group.oom_kills(), group.pids_refusals())

    def reason(self) -> Reason:
        """Which total was hit since, if any."""
        if self.group is None:
            return "ok"
        if self.group.oom_kills() > self.oom_kills:
            return "oom"
        return "pids" if self.group.pids_refusals() > self.pids_refusals else "ok"

    def usage(self, wall_s: float, cpu_s: float) -> Usage:
        """Use since; the memory peak counts files in tmpfs, and is 0 without a memory group."""
        return Usage(wall_s=wall_s, cpu_s=cpu_s, max_rss_bytes=self.group.peak_bytes() if self.group else 0)


def _exhausted(said: bytes) -> Reason:
    """Which of the sandbox's totals kept bubblewrap from starting a program, by its own message."""
    for text, reason in _RAN_OUT.items():
        if said.startswith(b"bwrap: ") and said.rstrip().endswith(text):
            return reason
    return "ok"


def exit_code(shown: int) -> int:
    """Bubblewrap and bash show a death by signal n as 128 + n; an own exit with such a code reads the same."""
    number = shown - 128
    return -number if number > 0 and number in signal.valid_signals() else shown


def conclude(
    end: End, killed: Reason | None, pump: Pump, counters: Counters, wall_s: float, cwd: str
) -> ExecResult:
    """The result of a launch that is over.

    Raises:
        SandboxLost: bubblewrap ended without starting the program, or without saying how it ended.
        SandboxPathError: `cwd` is not a folder that can be entered.
    """
    out, err = pump.stdout.output(), pump.stderr.output()
    usage, reason = counters.usage(wall_s, end.cpu_s), counters.reason()
    if killed is not None:
        return ExecResult(exit_code=None, stdout=out, stderr=err, reason=killed, usage=usage)
    if end.exit_code is not None:
        code = exit_code(end.exit_code)
        mine = None if reason == "oom" and code == -signal.SIGKILL else code
        return ExecResult(exit_code=mine, stdout=out, stderr=err, reason=reason, usage=usage)
    # No program ran, so standard error is bubblewrap's: what ran out, the sandbox's own programs used up.
    reason = _exhausted(err.head) if reason == "ok" else reason
    if reason != "ok":
        return ExecResult(exit_code=None, stdout=out, stderr=err, reason=reason, usage=usage)
    if err.head.startswith(_EXEC_FAILED):
        code = 127 if err.head.rstrip().endswith(_ABSENT) else 126
        text = err.head.removeprefix(b"bwrap: execvp ")
        err = Output(head=text, total_bytes=len(text))
        return ExecResult(exit_code=code, stdout=out, stderr=err, reason="ok", usage=usage)
    if err.head.startswith(_CHDIR_FAILED):
        raise SandboxPathError(f"cwd {cwd!r} is not a folder that can be entered; create it first")
    raise SandboxLost(f"bubblewrap did not run the program: {err.text.strip()[:500] or 'no message'}")

"""Reading /proc about the processes beneath one."""

from __future__ import annotations

import os
from pathlib import Path

_PF_EXITING = 4
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Direct children of a process, whichever of its threads made them; empty when it is gone."""
    try:
        lists = [Path(f"/proc/{pid}/task/{task}/children") for task in os.listdir(f"/proc/{pid}/task")]
        return sorted(int(child) for one in lists for child in one.read_text().split())
    except OSError:  # gone, or a kernel without CONFIG_PROC_CHILDREN
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and f"\nPPid:\t{pid}\n" in _text(entry / "status")
        ]


def cpu_s_beneath(pid: int) -> float:
    """Processor time in seconds of all that runs beneath a process, itself excluded.

    The kernel forgets it when a whole pid namespace is killed, so it is read before.
    """
    total, waiting = 0, children(pid)
    while waiting:
        one = waiting.pop()
        fields = _text(Path(f"/proc/{one}/stat")).rpartition(")")[2].split()
        if fields:
            total += sum(int(field) for field in fields[11:15])  # utime, stime, and those of reaped children
            waiting += children(one)
    return total * _TICK_S


def is_exiting(pid: int) -> bool:
    """Whether a process is gone, or on its way."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return not fields or bool(int(fields[6]) & _PF_EXITING)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")  # a program names its processes in any bytes
    except OSError:
        return ""

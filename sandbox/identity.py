"""Naming a process so that a later process with the same pid is not taken for it."""

from __future__ import annotations

import os
from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[19])


def own_name() -> str:
    """This process as `<pid>-<start>`."""
    return f"{os.getpid()}-{start_ticks(os.getpid())}"


def is_alive(name: str) -> bool:
    """Whether the process called `<pid>-<start>` lives; a name of another form counts as alive."""
    pid, _, start = name.partition("-")
    if not (pid.isdigit() and start.isdigit()):
        return True
    return start_ticks(int(pid)) == int(start)

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


def boot_id() -> str:
    """This boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> str:
    """Within which pids are meant: pids of another one say nothing here."""
    return os.readlink("/proc/self/ns/pid")

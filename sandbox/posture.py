"""Looking at a program in a sandbox from outside: what the kernel says about it, not what it says itself."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandbox import proctree
from sandbox.errors import SandboxLost
from sandbox.process import Process

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
_SHOWN = {
    "CapEff": "effective_capabilities",
    "CapPrm": "permitted_capabilities",
    "CapBnd": "bounding_capabilities",
    "CapAmb": "ambient_capabilities",
}


def program_of(process: Process, name: str, timeout_s: float = 5.0) -> int:
    """Host pid of the program called `name` that runs under a sandbox's init.

    Raises:
        SandboxLost: it does not appear in time.
    """
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        process.take_status()
        if process.init_pid is not None:
            for pid in proctree.children(process.init_pid):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                        return pid
        time.sleep(0.002)
    raise SandboxLost(f"the probe {name!r} did not start within {timeout_s} s")


def describe(pid: int) -> dict[str, Any]:
    """Identity, capabilities, filter, namespaces, descriptors, groups and limits of a process.

    Raises:
        OSError: the process is gone, or may not be looked at.
    """
    root = Path(f"/proc/{pid}")
    status = dict(_fields(root / "status"))
    namespaces = {
        name: os.readlink(root / "ns" / name) != os.readlink(f"/proc/self/ns/{name}") for name in NAMESPACES
    }
    return {
        "uid": int(status["Uid"].split()[0]),
        "gid": int(status["Gid"].split()[0]),
        "groups": [int(group) for group in status["Groups"].split()],
        **{shown: int(status[field], 16) for field, shown in _SHOWN.items()},
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "seccomp": int(status["Seccomp"]),
        "private_namespaces": namespaces,
        "descriptors": sorted(int(fd) for fd in os.listdir(root / "fd")),
        "cgroups": (root / "cgroup").read_text().splitlines(),
        "limits": dict(_limits(root / "limits")),
        "oom_score_adj": int((root / "oom_score_adj").read_text()),
        "writable_mounts": sorted(_writable(root / "mountinfo")),
        "init_command": Path(f"/proc/{status['PPid'].strip()}/cmdline")
        .read_bytes()
        .decode("utf-8", "replace"),
    }


def _fields(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        yield name, value.strip()


def _limits(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines()[1:]:
        yield line[:26].strip(), line[26:47].strip()


def _writable(path: Path) -> Iterator[str]:
    for line in path.read_text().splitlines():
        fields = line.split()
        if "rw" in fields[5].split(","):
            yield fields[4]

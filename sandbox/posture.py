"""Looking at a program in a sandbox from outside: what the kernel says about it, not what it says itself."""

from __future__ import annotations

import contextlib
import os
import select
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


def program_of(process: Process, timeout_s: float = 10.0) -> int:
    """Host pid of a `cat` launched with a pipe as its input, once it echoes and so is past its loader.

    Raises:
        SandboxLost: it does not answer in time.
    """
    pipes = process.pipes
    assert pipes.stdin is not None
    os.write(pipes.stdin, b"?")
    poll = select.poll()
    poll.register(pipes.stdout, select.POLLIN)
    poll.poll(timeout_s * 1000)
    with contextlib.suppress(BlockingIOError):
        if os.read(pipes.stdout, 1) == b"?":
            process.take_status()
            if process.init_pid is not None and (pids := proctree.children(process.init_pid)):
                return pids[0]
    raise SandboxLost(f"the probe did not start within {timeout_s} s")


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
    for line in path.read_text(errors="replace").splitlines():
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

"""Memory and process totals through control groups, version 1 or 2, where one can be written.

A process makes one group `agent-rl-<owner>` beneath its own, and in it one group a sandbox. The ledger names the first,
so that the reaper finds it when the process died.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.ledger import PREFIX, Ledger

_LINGER_S = 0.2


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The groups of one sandbox; `memory` and `pids` are the same folder in version 2, None where unavailable."""

    memory: Path | None
    pids: Path | None
    version: int
    _open: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """Descriptors of the counters, kept because every command reads all of them."""

    @property
    def procs_files(self) -> list[str]:
        """Files into which a process writes 0 to join."""
        return [str(folder / "cgroup.procs") for folder in dict.fromkeys((self.memory, self.pids)) if folder]

    def set_limits(self, *, memory_bytes: int, processes: int) -> None:
        """Bound the group; swap is counted as memory where the kernel offers that.

        Raises:
            OSError: the kernel refuses a value.
        """
        if self.memory and self.version == 1:
            (self.memory / "memory.limit_in_bytes").write_text(str(memory_bytes))
            with contextlib.suppress(OSError):
                (self.memory / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))
        elif self.memory:
            (self.memory / "memory.max").write_text(str(memory_bytes))
            with contextlib.suppress(OSError):
                (self.memory / "memory.swap.max").write_text("0")
        if self.pids:
            (self.pids / "pids.max").write_text(str(processes))

    def allow(self, processes: int) -> None:
        """Set the bound of processes anew for a launch, on top of those that ended and are still counted.

        Some kernels count a process for some milliseconds after its end, so that a quick row of innocent programs
        would hit the bound. What is let through on top is at most as much again; more is waited for.
        """
        if self.pids is None:
            return
        until = time.monotonic() + _LINGER_S
        while (ended := self._ended_but_counted()) > processes and time.monotonic() < until:
            time.sleep(0.001)
        (self.pids / "pids.max").write_text(str(processes + min(ended, processes)))

    def _ended_but_counted(self) -> int:
        if self.pids is None:
            return 0
        counted = int((self.pids / "pids.current").read_text())
        alive = (self.pids / ("tasks" if self.version == 1 else "cgroup.threads")).read_text()
        return max(0, counted - alive.count("\n"))

    def oom_kills(self) -> int:
        """How often the kernel killed for memory in this group."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        return self._field(f"{self.memory}/{name}", b"oom_kill") if self.memory else 0

    def pids_refusals(self) -> int:
        """How often a fork was refused in this group."""
        return self._field(f"{self.pids}/pids.events", b"max") if self.pids else 0

    def memory_refusals(self) -> int:
        """How often the group met its memory limit."""
        if not self.memory:
            return 0
        if self.version == 2:
            return self._field(f"{self.memory}/memory.events", b"max")
        text = self._read(f"{self.memory}/memory.failcnt").strip()
        return int(text) if text.isdigit() else 0

    def reset_peak(self) -> None:
        """Start a new measurement of the memory peak, where the kernel allows it."""
        if self.memory:
            with contextlib.suppress(OSError):
                os.write(self._file(self._peak), b"0")

    def peak_bytes(self) -> int:
        """Highest memory use since `reset_peak`, files in tmpfs included; 0 where it is not measured."""
        text = self._read(self._peak).strip() if self.memory else b""
        return int(text) if text.isdigit() else 0

    @property
    def _peak(self) -> str:
        return f"{self.memory}/{'memory.max_usage_in_bytes' if self.version == 1 else 'memory.peak'}"

    def _field(self, path: str, name: bytes) -> int:
        _, _, rest = (b"\n" + self._read(path)).partition(b"\n" + name + b" ")
        return int(rest.partition(b"\n")[0] or 0)

    def _read(self, path: str) -> bytes:
        try:
            return os.pread(self._file(path), 1024, 0)
        except OSError:
            return b""

    def _file(self, path: str) -> int:
        fd = self._open.get(path)
        if fd is None:
            try:
                fd = os.open(path, (os.O_RDWR if path == self._peak else os.O_RDONLY) | os.O_CLOEXEC)
            except PermissionError:  # a peak that cannot be reset (before Linux 6.12, version 2)
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if (first := self._open.setdefault(path, fd)) != fd:  # another thread was quicker
                os.close(fd)
                fd = first
        return fd

    def members(self) -> list[int]:
        """Pids in the group now."""
        for folder in (self.pids, self.memory):
            if folder:
                with contextlib.suppress(OSError):
                    return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
        return []

    def close_counters(self) -> None:
        """Close the descriptors of the counters."""
        while self._open:
            os.close(self._open.popitem()[1])

    def remove(self) -> None:
        """Remove the group once its last process is reaped; waits for that up to 2 s."""
        self.close_counters()
        for folder in dict.fromkeys((self.memory, self.pids)):
            if folder:
                remove_group(folder)


class Cgroups:
    """Where this process may make groups.

    `missing` says for `memory` and `pids` why they cannot be used.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.missing: dict[str, str] = {}
        self._parents: dict[str, Path] = {}
        self.version = 2 if _has_v2_controllers() else 1
        for controller in ("memory", "pids"):
            try:
                self._parents[controller] = self._parent(controller)
            except OSError as error:
                self.missing[controller] = f"no writable {controller} cgroup: {error}"

    @property
    def usable(self) -> bool:
        """Whether there is any group to make."""
        return bool(self._parents)

    def make(self, name: str) -> Cgroup:
        """A new, unbounded group called `name`.

        Raises:
            OSError: the kernel refuses.
        """
        folders: dict[str, Path] = {}
        for controller, parent in self._parents.items():
            folder = parent / name
            folder.mkdir(exist_ok=self.version == 2 and folder in folders.values())
            folders[controller] = folder
        return Cgroup(folders.get("memory"), folders.get("pids"), self.version)

    def close(self) -> None:
        """Remove this process's own group."""
        for folder in dict.fromkeys(self._parents.values()):
            remove_group(folder)

    def _parent(self, controller: str) -> Path:
        own = _own_folder(controller if self.version == 1 else "")
        tried: OSError | None = None
        for base in (own,) if self.version == 1 else (own, own.parent):
            try:
                if self.version == 2:
                    _delegate(base, controller)
                folder = base / f"{PREFIX}{self._ledger.owner}"
                self._ledger.record("cgroup", str(folder))
                folder.mkdir(exist_ok=True)
                if self.version == 2:
                    _delegate(folder, controller)
                if not os.access(folder / "cgroup.procs", os.W_OK):
                    raise OSError(f"{folder}/cgroup.procs cannot be written")
                return folder
            except OSError as error:
                tried = tried or error
        raise tried or OSError("not found")


def _has_v2_controllers() -> bool:
    try:
        return "memory" in (_own_folder("") / "cgroup.controllers").read_text().split()
    except OSError:
        return False


def _own_folder(controller: str) -> Path:
    return folder_of("self", controller)


def folder_of(pid: int | str, controller: str) -> Path:
    """A process's folder in the hierarchy of a version 1 controller, or of version 2 when that is empty.

    Raises:
        OSError: the process is gone, or the hierarchy is not mounted here.
    """
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(",") if controller else not names:
            break
    else:
        raise OSError(f"process {pid} is in no {controller or 'version 2'} cgroup")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        fields, (kind, _, options) = left.split(), right.split(None, 2)
        matches = kind == "cgroup" and controller in options.split(",") if controller else kind == "cgroup2"
        root = fields[3]
        if matches and (path == root or root == "/" or path.startswith(root + "/")):
            return Path(fields[4]) / os.path.relpath(path, root)
    raise OSError(f"the {controller or 'version 2'} cgroup hierarchy is not mounted")


def _delegate(folder: Path, controller: str) -> None:
    control = folder / "cgroup.subtree_control"
    if controller not in control.read_text().split():
        control.write_text(f"+{controller}")


def remove_group(folder: Path) -> None:
    """Remove an empty group; one whose last processes are just ending is waited for, up to 2 s."""
    for _ in range(200):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)

"""The control groups of a container, from the host: counters, processor time, who is in them, and killing those."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.cgroups import Cgroup, folder_of
from sandbox.errors import SandboxLost

_DEATH_S = 10.0
_LEAST_TASKS = 18  # threads of the daemon's launcher are counted until it has become the program


@dataclass(frozen=True, slots=True)
class ShellGroup(Cgroup):
    """A shell's processes, in a group inside the container's so that they can be told from those of `exec`."""

    def pids_refusals(self) -> int:
        """Refusals here and in the container: kernels differ in which of the two they count them."""
        assert self.pids is not None
        outer = Cgroup(None, self.pids.parent, self.version)
        try:
            return Cgroup.pids_refusals(self) + outer.pids_refusals()
        finally:
            outer.close_counters()


class Groups:
    """The groups of a container, by its id and the host pid of its first process.

    Raises:
        OSError: they are not visible here.
    """

    def __init__(self, container: str, init: int, version: int) -> None:
        self._version, self._shells, self._lock = version, 0, threading.Lock()
        memory, self.folder = (
            folder_of(init, "memory" if version == 1 else ""),
            folder_of(init, "pids" if version == 1 else ""),
        )
        self.cgroup = Cgroup(memory, self.folder, version)
        self._cpu = folder_of(init, "cpuacct") / "cpuacct.usage" if version == 1 else memory / "cpu.stat"
        if container not in str(self.folder):  # another pid namespace than the daemon's
            raise OSError(f"process {init} is in {self.folder}, which is not the container's group")
        if not os.access(self.folder / "cgroup.procs", os.W_OK):
            raise OSError(f"{self.folder} cannot be written")

    def cpu_s(self) -> float:
        """Processor time that everything in the container has used, in seconds; 0 when it is gone."""
        try:
            text = self._cpu.read_text()
        except OSError:
            return 0.0
        return int(text) * 1e-9 if self._version == 1 else int(text.split()[1]) * 1e-6

    def bound(self, tasks: int) -> Callable[[], None]:
        """Bound processes and threads for a launch; call what it returns once the program runs.

        Raises:
            SandboxLost: the container is gone.
        """
        try:
            self.cgroup.allow(max(tasks, _LEAST_TASKS))
        except OSError as error:
            raise SandboxLost(f"the container's control group is gone: {error}") from error
        return (lambda: self._settle(tasks)) if tasks < _LEAST_TASKS else (lambda: None)

    def add_shell(self, pid: int) -> ShellGroup:
        """A group inside for a shell that has started nothing yet, and for all that it will start.

        Raises:
            SandboxLost: the container is gone.
        """
        with self._lock:
            self._shells += 1
            folder = self.folder / f"shell-{self._shells}"
        try:
            folder.mkdir()
            with contextlib.suppress(ProcessLookupError):
                (folder / "cgroup.procs").write_text(str(pid))
        except OSError as error:
            raise SandboxLost(f"the container's control group is gone: {error}") from error
        return ShellGroup(self.cgroup.memory, folder, self._version)

    def drop_shell(self, group: ShellGroup) -> None:
        """Remove the group of a shell that is dead."""
        group.close_counters()
        assert group.pids is not None
        Cgroup(None, group.pids, self._version).remove()

    def _settle(self, tasks: int) -> None:
        with contextlib.suppress(OSError):  # the container went meanwhile, which its program's end will show
            self.cgroup.allow(tasks)

    def close(self) -> None:
        """Close the counters; the groups are the daemon's to remove."""
        self.cgroup.close_counters()


def kill(folder: Path, spared: frozenset[int] = frozenset()) -> None:
    """Kill what is in a group, groups inside it not included, until only the spared are left.

    Raises:
        SandboxLost: something survives SIGKILL.
    """
    until = time.monotonic() + _DEATH_S
    pause = 0.0005
    while found := _pids(folder) - spared:
        with contextlib.ExitStack() as opened:
            pinned: dict[int, int] = {}
            for pid in found:
                with contextlib.suppress(OSError):
                    pinned[pid] = os.pidfd_open(pid)
                    opened.callback(os.close, pinned[pid])
            for pid in _pids(folder) & pinned.keys():  # looked at again, now that its pid cannot be another's
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pinned[pid], signal.SIGKILL)
        if time.monotonic() > until:
            raise SandboxLost(f"processes {sorted(found)[:5]} of a container survive SIGKILL")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _pids(folder: Path) -> set[int]:
    try:
        return {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
    except OSError:  # the group is gone, and all in it
        return set()

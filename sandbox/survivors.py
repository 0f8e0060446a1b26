"""Finding and killing what a dead owner's programs left running.

A process is killed on one of three kinds of evidence, looked at again once a descriptor pins its pid: it is in a
control group that the dead owner made; it runs as a user id that the dead owner had and nobody holds now; or it
stands in the dead owner's program folder or runs its copy of bubblewrap, as a launch does before it has become either.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.uids import Uids

PROGRAMS = os.path.join("bin", "b", "p")
"""Where launches stand, beneath an owner's folder."""
_SIGNATURE = "owner"
_KILL_S = 10.0


def sign(base: str, owner: str) -> None:
    """Write an owner's name into its folder: processes that stand in `PROGRAMS` beneath it are told by that."""
    Path(base, _SIGNATURE).write_text(owner)


class Survivors:
    """What may still run of one dead owner.

    Args:
        owner: Its name.
        groups: Control groups that it made.
        trees: Folders that it made.
        uids: Ids that it had, held by the caller so that nobody claims them meanwhile.
    """

    def __init__(self, owner: str, groups: list[str], trees: list[str], uids: set[int]) -> None:
        self._owner, self._groups, self._uids = owner, groups, uids
        self._copies: list[os.stat_result] = []
        for tree in trees:
            with contextlib.suppress(OSError):
                self._copies.append(os.lstat(os.path.join(tree, PROGRAMS, "bwrap")))

    def find(self) -> set[int]:
        """Their pids."""
        mine = {os.getpid(), os.getppid()}
        members = self._members() - mine
        return members | {pid for pid in _processes() - mine - members if self._is_its(pid)}

    def kill(self) -> set[int]:
        """Kill until none is left or 10 s are over; returns the pids that a signal was sent to.

        A dying program may have started others, and a launch may still be on its way.
        """
        for group in self._groups:
            with contextlib.suppress(OSError):  # a fork bomb must not outrun the kills
                (Path(group) / "pids.max").write_text("0")
        killed: set[int] = set()
        until = time.monotonic() + _KILL_S
        while (found := self.find()) and time.monotonic() < until:
            for pid in found:
                with contextlib.suppress(OSError), _pinned(pid) as fd:
                    if pid in self._members() or self._is_its(pid):
                        signal.pidfd_send_signal(fd, signal.SIGKILL)
                        killed.add(pid)
            time.sleep(0.005)
        return killed

    def _members(self) -> set[int]:
        found: set[int] = set()
        for group in self._groups:
            for folder, _, _ in os.walk(group):
                with contextlib.suppress(OSError):
                    found |= {int(pid) for pid in Path(folder, "cgroup.procs").read_text().split()}
        return found

    def _is_its(self, pid: int) -> bool:
        return _uid_of(pid) in self._uids or self._stands_there(pid) or self._runs_copy(pid)

    def _runs_copy(self, pid: int) -> bool:
        """Whether it is a bubblewrap whose parent died before it could ask to be told, and which waits for ever."""
        try:
            program = os.stat(f"/proc/{pid}/exe")
        except OSError:
            return False
        return any(os.path.samestat(program, copy) for copy in self._copies)

    def _stands_there(self, pid: int) -> bool:
        """Whether the folder that it stands in is signed; nothing but its own death follows from a forged signature."""
        signature = os.path.join(*[".."] * len(PROGRAMS.split(os.sep)), _SIGNATURE)
        try:
            folder = os.open(f"/proc/{pid}/cwd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
            fd = os.open(signature, flags, dir_fd=folder)
        except OSError:
            return False
        finally:
            os.close(folder)
        try:
            return stat.S_ISREG(os.fstat(fd).st_mode) and os.read(fd, 200) == self._owner.encode()
        finally:
            os.close(fd)


@contextlib.contextmanager
def held_uids(wanted: set[int]) -> Iterator[set[int]]:
    """Those of the ids that nobody has claimed, kept unclaimed meanwhile."""
    if not wanted or os.geteuid() != 0:
        yield set()
        return
    uids = Uids()
    try:
        yield {uid for uid in wanted if uids.hold(uid)}
    finally:
        uids.close()


@contextlib.contextmanager
def _pinned(pid: int) -> Iterator[int]:
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def _processes() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def _uid_of(pid: int) -> int | None:
    """The effective user id of a running process; None when it is gone or only waits to be reaped."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if fields.get("State", "").split()[:1] in (["Z"], ["X"]) or "Uid" not in fields:
        return None
    return int(fields["Uid"].split()[1])

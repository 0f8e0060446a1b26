"""What each process has made for its sandboxes, written down before it is made, for whoever must remove it.

A process that makes sandboxes is an owner: one file, which it keeps locked while it lives. The kernel drops the lock
however the process ends, so an unlocked file is that of a dead owner. The first line says who the owner was, each
further line `<kind> <value>` names one thing. What lasts longer than a boot is on disk before it is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandbox import identity

Kind = Literal["cgroup", "folder", "uid", "engine"]
KINDS: tuple[Kind, ...] = ("cgroup", "folder", "uid", "engine")
PREFIX = "agent-rl-"
"""All groups and folders that an owner makes are called `agent-rl-<owner>` or begin so."""
LEASE_S = 24 * 3600.0
"""An owner of another boot or pid namespace counts as dead when its file is unlocked and untouched for so long."""
_ENGINE_S = 120.0
"""So long after the last word to a daemon it may still be making what a dead owner asked for."""
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_MAX_BYTES = 4 << 20


class Ledger:
    """This process's own file.

    Attributes:
        owner: `<pid>-<start>-<random>`; part of the name of everything that it makes.

    Raises:
        OSError: no folder for it can be made.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._lock, self._known = threading.Lock(), set[tuple[str, str]]()
        self._folder = _make_folder(folder)
        self._fd, self.owner = _create(self._folder)
        who = {
            "boot": identity.boot_id(),
            "pid_namespace": identity.pid_namespace(),
            "pid": os.getpid(),
            "start": identity.start_ticks(os.getpid()),
        }
        os.write(self._fd, json.dumps(who).encode() + b"\n")
        self.sync()

    def record(self, kind: Kind, value: str) -> None:
        """Note one thing before it is made; a thing noted twice takes one line.

        The line survives the death of the process at once, and that of the machine after `sync`.

        Raises:
            OSError: the disk is full.
            ValueError: the value holds a line break.
        """
        if "\n" in value:
            raise ValueError(f"{value!r} holds a line break and cannot be noted; choose another name")
        with self._lock:
            if (kind, value) not in self._known:
                os.write(self._fd, f"{kind} {value}\n".encode())
                self._known.add((kind, value))

    def touch(self) -> None:
        """Say that a noted engine is being asked for something that it may make after this process's death."""
        os.utime(self._fd)

    def sync(self) -> None:
        """Bring the file to the disk."""
        os.fsync(self._fd)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def abandon(self) -> None:
        """Let go of it in a forked child, whose copy of the descriptor would keep a dead parent alive."""
        os.close(self._fd)

    def close(self) -> None:
        """Remove the file: everything that it names is gone."""
        (self._folder / self.owner).unlink(missing_ok=True)
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class DeadOwner:
    """An owner that is gone, held by this process until its things are removed."""

    name: str
    path: Path
    here: bool
    """Whether its pids are meant here: same boot, same pid namespace."""
    things: dict[Kind, list[str]] = field(default_factory=dict)
    written: float = 0.0
    """When it last wrote, in seconds since the epoch."""

    @property
    def settled(self) -> bool:
        """Whether nothing that it asked an engine for can still come; until then it is not to be forgotten."""
        return not self.things.get("engine") or time.time() - self.written > _ENGINE_S

    def forget(self) -> None:
        """Remove its file."""
        self.path.unlink(missing_ok=True)


def folders() -> list[Path]:
    """Where this user's owners may be noted. The environment does not decide: all processes must look alike."""
    user = os.geteuid()
    return [
        *([Path("/run/agent-rl/owners")] if user == 0 else []),
        _in(Path("/tmp")),
        _in(tempfile.gettempdir()),
    ]


@contextlib.contextmanager
def dead_owners(folder: Path) -> Iterator[list[DeadOwner]]:
    """The dead owners of a folder, held so that no other process removes the same; living ones are left out."""
    with contextlib.ExitStack() as held:
        found: list[DeadOwner] = []
        names = sorted(os.listdir(folder)) if _is_private(folder) else []
        for name in names:
            with contextlib.suppress(OSError):
                fd = os.open(folder / name, _FLAGS)
                held.callback(os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_linked(fd, folder / name) and (owner := _read(fd, folder / name)) is not None:
                    found.append(owner)
        yield found


def _read(fd: int, path: Path) -> DeadOwner | None:
    """None for an owner elsewhere, whose lease still runs."""
    head, *lines = os.pread(fd, _MAX_BYTES, 0).decode("utf-8", "replace").split("\n")
    try:
        who = json.loads(head)
        here = who["boot"] == identity.boot_id() and who["pid_namespace"] == identity.pid_namespace()
    except (ValueError, TypeError, KeyError):
        return DeadOwner(path.name, path, here=True)  # it died before this line was written: it made nothing
    if not here and time.time() - os.fstat(fd).st_mtime < LEASE_S:
        return None
    things: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    for line in lines[
        :-1
    ]:  # the last one is empty, or was cut by the owner's death before the thing was made
        for kind in KINDS:
            if line.startswith(f"{kind} "):
                things[kind].append(line.removeprefix(f"{kind} "))
    return DeadOwner(path.name, path, here, things, os.fstat(fd).st_mtime)


def _in(parent: Path | str) -> Path:
    return Path(parent, f"{PREFIX}owners-{os.geteuid()}")


def _make_folder(wanted: Path | None) -> Path:
    refused: OSError | None = None
    for folder in [wanted] if wanted else folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(folder) or not os.access(folder, os.W_OK):
                raise PermissionError(f"{folder} must belong to this user alone and be writable (mode 700)")
        except OSError as error:
            refused = refused or error
        else:
            return folder
    raise refused or OSError("no folder for the ledger")


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077 and folder.is_dir()


def _create(folder: Path) -> tuple[int, str]:
    """A new file that is locked and still has its name: a reaper may have taken it between the two."""
    while True:
        name = f"{identity.own_name()}-{secrets.token_hex(4)}"
        fd = os.open(folder / name, _FLAGS | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_linked(fd, folder / name):
                return fd, name
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _is_linked(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False

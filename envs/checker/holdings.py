"""What this process holds of the machine: child processes, mounts, temporary files, descriptors."""

from __future__ import annotations

import gc
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MARK = "AGENT_RL_CHECK"
"""Processes started during a check carry this in their environment, also after their parent has gone."""
GRACE_S = 3.0
"""Killed processes may take this long to disappear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What is held at one moment, each thing described by a line."""

    processes: frozenset[str]
    mounts: frozenset[str]
    files: frozenset[str]
    descriptors: frozenset[str]

    def beyond(self, before: Holdings) -> list[str]:
        """What is held now and was not before."""
        kinds = ("processes", "mounts", "files", "descriptors")
        left = {kind: sorted(getattr(self, kind) - getattr(before, kind)) for kind in kinds}
        return [f"{len(lines)} {kind} ({', '.join(lines[:3])})" for kind, lines in left.items() if lines]


def can_look() -> bool:
    """Whether this machine shows what is held: Linux with /proc."""
    return all(Path(p).exists() for p in ("/proc/self/mounts", "/proc/self/fd", "/proc/self/stat"))


def look(folder: Path, mark: str) -> Holdings:
    """Look at everything, after collecting garbage."""
    gc.collect()
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    return Holdings(
        processes=frozenset(_processes(mark)),
        mounts=frozenset(mounts),
        files=frozenset(str(p.relative_to(folder)) for p in folder.rglob("*")),
        descriptors=frozenset(_descriptors()),
    )


def look_until_clean(before: Holdings, folder: Path, mark: str) -> list[str]:
    """What is left over after a moment of grace."""
    deadline = time.monotonic() + GRACE_S
    while left := look(folder, mark).beyond(before):
        if time.monotonic() > deadline:
            return left
        time.sleep(0.05)
    return []


@contextmanager
def private_folder() -> Iterator[tuple[Path, str]]:
    """Send temporary files to a folder of our own and mark the processes started meanwhile."""
    mark, kept = uuid.uuid4().hex, {key: os.environ.get(key) for key in ("TMPDIR", MARK)}
    tempdir = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="agent-rl-check-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o777)  # sandboxes may run under another user
        os.environ["TMPDIR"], os.environ[MARK] = name, mark
        tempfile.tempdir = name
        try:
            yield Path(name), mark
        finally:
            tempfile.tempdir = tempdir
            for key, value in kept.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value


def _processes(mark: str) -> Iterator[str]:
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has just ended
            continue
        pid, name = int(entry.name), stat[stat.index("(") + 1 : stat.rindex(")")]
        parents[pid], names[pid] = int(stat[stat.rindex(")") + 2 :].split()[1]), name
    for pid, name in names.items():
        if pid != os.getpid() and (_descends(pid, parents) or _is_marked(pid, mark)):
            yield f"{name} {pid}"


def _descends(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == os.getpid():
            return True
    return False


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _descriptors() -> Iterator[str]:
    for name in os.listdir("/proc/self/fd"):
        try:
            yield f"{name} -> {os.readlink(f'/proc/self/fd/{name}')}"
        except OSError:  # the descriptor of this very listing
            continue

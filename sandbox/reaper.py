"""Removing what dead owners left behind: processes, control groups, mounts, folders, and what backends keep elsewhere.

Every process does it when it makes its first sandbox, and so does `agent-rl runs clean`. An owner is dead when its
ledger is unlocked; what no ledger of a dead owner names is never touched.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox import ledger
from sandbox.cgroups import remove_group
from sandbox.ledger import DeadOwner
from sandbox.removal import remove_tree
from sandbox.survivors import Survivors, held_uids

_ELSEWHERE: tuple[str, ...] = ("sandbox.docker_leases",)
"""Modules of backends whose daemon remembers the owners, where they are installed. Each has `leftovers(daemon)` and
`remove_leftovers(daemon)`, which return names, look at dead owners only, and return nothing when no daemon answers.
The daemons asked are those that dead owners used and, as the empty word, that of the environment."""
_MNT_DETACH = 2


def audit() -> list[str]:
    """What dead owners left on this machine, as `<kind> <name>`; nothing is changed."""
    found: list[str] = []
    daemons = {""}
    for owner in _dead():
        daemons |= set(owner.things.get("engine", []))
        with _survivors(owner) as survivors:
            found += [f"process {pid}" for pid in sorted(survivors.find())]
        found += [f"cgroup {path}" for path in _groups(owner)]
        for path in _trees(owner):
            found += [f"mount {inner}" for inner in _mounts(path)]
            found.append(f"folder {path}")
        if owner.settled:
            found.append(f"owner {owner.name}")
    return found + _elsewhere("leftovers", daemons)


def clean() -> list[str]:
    """Remove what `audit` finds; returns what was removed. What resists stays noted, for the next time."""
    removed: list[str] = []
    daemons = {""}
    for owner in _dead():
        daemons |= set(owner.things.get("engine", []))
        with _survivors(owner) as survivors:
            removed += [f"process {pid}" for pid in sorted(survivors.kill())]
            alive = survivors.find()
        removed += _remove(("cgroup", path, _remove_groups) for path in _groups(owner))
        for path in _trees(owner):
            removed += _remove(("mount", inner, _unmount) for inner in _mounts(path))
            removed += _remove([("folder", path, remove_tree)])
        if owner.settled and not (alive or _groups(owner) or _trees(owner)):
            owner.forget()
            removed.append(f"owner {owner.name}")
    return removed + _elsewhere("remove_leftovers", daemons)


def _dead() -> Iterator[DeadOwner]:
    """Each dead owner, held meanwhile."""
    for folder in dict.fromkeys(ledger.folders()):
        with ledger.dead_owners(folder) as dead:
            yield from dead


def _remove(things: Iterator[_Thing] | list[_Thing]) -> list[str]:
    removed: list[str] = []
    for kind, name, remove in things:
        with contextlib.suppress(OSError):
            remove(name)
            removed.append(f"{kind} {name}")
    return removed


_Thing = tuple[str, str, Callable[[str], None]]


@contextlib.contextmanager
def _survivors(owner: DeadOwner) -> Iterator[Survivors]:
    """Pids mean nothing for an owner of another boot or pid namespace."""
    uids = {int(uid) for uid in owner.things.get("uid", []) if uid.isdigit()} if owner.here else set()
    with held_uids(uids) as held:
        yield Survivors(owner.name, _groups(owner), _trees(owner), held)


def _groups(owner: DeadOwner) -> list[str]:
    return [path for path in owner.things.get("cgroup", []) if _is_its(path, owner) and os.path.isdir(path)]


def _trees(owner: DeadOwner) -> list[str]:
    return [path for path in owner.things.get("folder", []) if _is_its(path, owner) and os.path.lexists(path)]


def _is_its(path: str, owner: DeadOwner) -> bool:
    """A ledger can only name what bears its owner's name."""
    return os.path.isabs(path) and os.path.basename(path) == f"{ledger.PREFIX}{owner.name}"


def _remove_groups(path: str) -> None:
    for folder, _, _ in os.walk(path, topdown=False):
        remove_group(Path(folder))
    if os.path.isdir(path):
        raise OSError(errno.EBUSY, "processes remain in the group", path)


def _mounts(tree: str) -> list[str]:
    """Mount points in a tree, inner ones first."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    points = [os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1")) for line in lines]
    return sorted((point for point in points if point.startswith(f"{tree}/")), key=len, reverse=True)


def _unmount(path: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), _MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _elsewhere(question: str, daemons: set[str]) -> list[str]:
    found: list[str] = []
    for name in _ELSEWHERE:
        if importlib.util.find_spec(name) is not None:
            ask = getattr(importlib.import_module(name), question)
            found += [thing for daemon in sorted(daemons) for thing in ask(daemon)]
    return list(dict.fromkeys(found))

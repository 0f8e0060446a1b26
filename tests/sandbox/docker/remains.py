"""What there is of an engine's containers on the machine, seen from outside."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import docker

from sandbox.docker_labels import OWNER
from tests.sandbox.docker import engine

_SETTLE_S = 20.0
_BY_CONTAINER = ("data/containers", "data/overlay2", "data/image/overlay2/layerdb/mounts")


def remains(address: str) -> dict[str, list[str]]:
    """Containers, processes of the engine's launchers, mounts, control groups and folders, each sorted."""
    home = engine.home(address)
    api = docker.APIClient(base_url=address)
    try:
        containers = [one["Id"] for one in api.containers(all=True, filters={"label": [OWNER]})]
    finally:
        api.close()
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = {
        "containers": containers,
        "launchers": _launchers(home),
        "mounts": [point for point in mounts if point.startswith(f"{home}/")],
        "groups": [str(path) for path in engine.groups(address) if path.name != home.name],
        "folders": _folders(home / "exec")
        + [f"{p}/{n}" for p in _BY_CONTAINER for n in os.listdir(home / p)],
    }
    return {kind: sorted(things) for kind, things in found.items()}


def steady(address: str) -> dict[str, list[str]]:
    """What remains while nothing is just starting a program: the same twice in a row."""
    until, found = time.monotonic() + _SETTLE_S, remains(address)
    while (again := remains(address)) != found and time.monotonic() < until:
        found = again
    return found


def new(address: str, before: dict[str, list[str]]) -> list[str]:
    """What differs from before, and goes on doing so for 20 s: the engine tidies up on its own time."""
    until = time.monotonic() + _SETTLE_S
    while (found := remains(address)) != before and time.monotonic() < until:
        time.sleep(0.1)
    kinds = {kind: set(things).symmetric_difference(before[kind]) for kind, things in found.items()}
    return sorted(f"{kind}: {thing}" for kind, things in kinds.items() for thing in things)


def _launchers(home: Path) -> list[str]:
    """What the engine starts for each container and program: shims and runc."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            name = os.path.basename(words.partition("\0")[0])
            if f"{home}/" in words and name not in ("dockerd", "containerd"):
                found.append(f"{process.name} {name}")
    return found


def _folders(folder: Path) -> list[str]:
    """Folders, not files: those of a running container come and go with its programs."""
    return [os.path.join(place, name) for place, names, _ in os.walk(folder) for name in names]

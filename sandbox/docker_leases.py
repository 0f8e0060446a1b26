"""What dead processes left at the engine, for the reaper: images, and containers if the daemon died at a bad moment."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

from sandbox.docker_labels import OWNER, VERSION, is_dead

_SOCKET = "/var/run/docker.sock"
_CALL_S = 5


def leftovers(engine: str = "") -> list[str]:
    """Containers and images of dead owners at an engine, by default that of the environment.

    They are named `container <id>` and `image <name>`.
    """
    with _client(engine) as client:
        if client is None:
            return []
        from sandbox.images import leases

        return [f"container {found}" for found in _dead(client)] + leases.leftovers(client)


def remove_leftovers(engine: str = "") -> list[str]:
    """Remove what `leftovers` finds; returns what was removed."""
    with _client(engine) as client:
        return clean(client) if client is not None else []


def clean(client: Any) -> list[str]:
    """Remove the containers and images of dead owners at an engine; returns them as `leftovers` does.

    Args:
        client: a `docker.APIClient`.
    """
    import docker

    from sandbox.images import leases

    removed = []
    for found in _dead(client):
        try:
            client.remove_container(found, force=True, v=True)
        except (docker.errors.DockerException, OSError):
            continue  # gone meanwhile, or noted by its label for the next time
        removed.append(f"container {found}")
    return removed + leases.clean(client)


def _dead(client: Any) -> list[str]:
    import docker

    try:
        found = client.containers(all=True, filters={"label": [OWNER]})
    except (docker.errors.DockerException, OSError):
        return []
    return [one["Id"] for one in found if is_dead(one.get("Labels") or {})]


@contextlib.contextmanager
def _client(engine: str) -> Iterator[Any | None]:
    """An engine if one listens there; the SDK is not loaded otherwise."""
    path = (engine or os.environ.get("DOCKER_HOST") or f"unix://{_SOCKET}").removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except (OSError, ValueError):
            yield None
            return
    import docker

    client = docker.APIClient(base_url=f"unix://{path}", timeout=_CALL_S, version=VERSION)
    try:
        yield client
    finally:
        client.close()

"""Who needs an image: a tag for each process, because an image is shared and its labels cannot be changed.

`agent-rl-image:<content>` is its name, `agent-rl-lease:<boot>.<pid namespace>.<process>.<expiry>.<content>` says that
a process needs it, `agent-rl-kept:<content>` that it outlives all processes. What a build left half-done carries the
label of the process that built.
"""

from __future__ import annotations

import re
import time
from typing import Any

import docker

from sandbox import docker_labels

NAME, LEASE, KEPT = "agent-rl-image", "agent-rl-lease", "agent-rl-kept"
BUILDER, BUILDER_EXPIRES = "agent-rl.image.owner", "agent-rl.image.expires"
"""Not the labels of containers: those inherit an image's."""
_FAULTS = (docker.errors.DockerException, OSError)
_TAG = re.compile(r"([0-9a-f-]{36})\.(\d+)\.(\d+-\d+)\.(\d+)\.([0-9a-f]+)")


def builder_labels() -> dict[str, str]:
    """Of what this process builds."""
    own = docker_labels.labels()
    return {BUILDER: own[docker_labels.OWNER], BUILDER_EXPIRES: own[docker_labels.EXPIRES]}


def claim(client: Any, image: str, content: str, *, keep: bool) -> str:
    """Name an image for this process, or for ever; returns the name.

    Raises:
        docker.errors.DockerException, OSError: the daemon failed.
    """
    if keep:
        client.tag(image, KEPT, content, force=True)
    else:
        boot, namespace, process = docker_labels.own_name().split("/")
        digits = "".join(filter(str.isdigit, namespace))
        until = int(time.time() + docker_labels.LEASE_S)
        client.tag(image, LEASE, f"{boot}.{digits}.{process}.{until}.{content}", force=True)
    client.tag(image, NAME, content, force=True)
    return f"{NAME}:{content}"


def leftovers(client: Any) -> list[str]:
    """Images that only dead processes needed, as `image <name or id>`."""
    return [f"image {found}" for found in _leftovers(client)]


def clean(client: Any) -> list[str]:
    """Remove what `leftovers` finds; returns what was removed.

    Args:
        client: a `docker.APIClient`.
    """
    removed = []
    for found in _leftovers(client):
        try:
            client.remove_image(found)  # refused while a container uses it
        except _FAULTS:
            continue
        removed.append(f"image {found}")
    return removed


def _leftovers(client: Any) -> list[str]:
    """Leases of dead processes and the names that nobody else needs, then what their builds left half-done."""
    leases, names = [], []
    try:
        named = client.images(all=False)
        half = client.images(filters={"label": [BUILDER], "dangling": True})
    except _FAULTS:
        return []
    for image in named:
        tags = image.get("RepoTags") or []
        held = [tag for tag in tags if tag.startswith(f"{LEASE}:")]
        dead = [tag for tag in held if _is_dead(tag.removeprefix(f"{LEASE}:"))]
        kept = any(tag.startswith(f"{KEPT}:") for tag in tags)
        leases += dead
        if len(dead) == len(held) and not kept:
            names += [tag for tag in tags if tag.startswith(f"{NAME}:")]
    return [*leases, *names, *(one["Id"] for one in half if _is_dead_builder(one.get("Labels") or {}))]


def _is_dead(tag: str) -> bool:
    found = _TAG.fullmatch(tag)
    if found is None:
        return False
    boot, namespace, process, until, _ = found.groups()
    return docker_labels.is_dead(
        {
            docker_labels.OWNER: f"{boot}/pid:[{namespace}]/{process}",
            docker_labels.EXPIRES: until,
        }
    )


def _is_dead_builder(labels: dict[str, str]) -> bool:
    own = {
        docker_labels.OWNER: labels.get(BUILDER, ""),
        docker_labels.EXPIRES: labels.get(BUILDER_EXPIRES, ""),
    }
    return docker_labels.is_dead(own)

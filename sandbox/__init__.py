"""Where untrusted code runs."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sandbox.base import Sandbox, SandboxSnapshot, Shell
from sandbox.errors import (
    ImageError,
    SandboxBusy,
    SandboxClosed,
    SandboxError,
    SandboxLost,
    SandboxPathError,
    SandboxUnavailable,
)
from sandbox.types import CapabilityReport, ExecResult, Limits, Output, Reason, SandboxSpec, Usage

__all__ = [
    "CapabilityReport",
    "ExecResult",
    "ImageError",
    "Limits",
    "Output",
    "Reason",
    "Sandbox",
    "SandboxBusy",
    "SandboxClosed",
    "SandboxError",
    "SandboxLost",
    "SandboxPathError",
    "SandboxSnapshot",
    "SandboxSpec",
    "SandboxUnavailable",
    "Shell",
    "Usage",
    "capabilities",
    "create",
]


class _Backend(NamedTuple):
    create: Callable[[SandboxSpec], Sandbox]
    capabilities: Callable[[], CapabilityReport]


def _bubblewrap(where: str) -> _Backend:
    from sandbox import setup  # here, so that importing the nouns stays cheap

    if where:
        raise ValueError(f"bubblewrap runs on this machine and takes no address, but {where!r} was given")
    return _Backend(setup.create, setup.capabilities)


def _docker(where: str) -> _Backend:
    from sandbox import docker_setup

    return _Backend(lambda spec: docker_setup.create(spec, where), lambda: docker_setup.capabilities(where))


def _gvisor(where: str) -> _Backend:
    from sandbox import gvisor_setup

    if where:
        raise ValueError(f"gvisor runs on this machine and takes no address, but {where!r} was given")
    return _Backend(gvisor_setup.create, gvisor_setup.capabilities)


def _remote(where: str) -> _Backend:
    from sandbox.remote import client

    return _Backend(partial(client.create, where), partial(client.capabilities, where))


_BACKENDS: dict[str, Callable[[str], _Backend]] = {
    "bubblewrap": _bubblewrap,
    "docker": _docker,
    "gvisor": _gvisor,
    "remote": _remote,
}
"""One line per backend. A backend may be given an address: `name:address`."""


def create(spec: SandboxSpec = SandboxSpec(), backend: str = "bubblewrap") -> Sandbox:
    """Start a sandbox. `backend` is a name, or `name:address` for one that runs elsewhere.

    Raises:
        SandboxUnavailable: the backend cannot run here, or cannot enforce what `spec.require` names.
        SandboxPathError: `spec.files` has a path outside the workspace, or does not fit.
        ValueError: no such backend, or a limit is not positive.
    """
    return _backend(backend).create(spec)


def capabilities(backend: str = "bubblewrap") -> CapabilityReport:
    """What a backend can enforce on this machine; nothing is enforced where it cannot run, and `missing` says why.

    Raises:
        ValueError: no such backend.
    """
    return _backend(backend).capabilities()


def _backend(backend: str) -> _Backend:
    name, _, where = backend.partition(":")
    if name not in _BACKENDS:
        near = difflib.get_close_matches(name, _BACKENDS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no sandbox backend {name!r}{hint} Choices: {', '.join(sorted(_BACKENDS))}")
    return _BACKENDS[name](where)

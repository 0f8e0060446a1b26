"""The `image` profile: programs are root of an image whose system they may change, in a user namespace of their own.

They are its root by their user id, which owns the image's files, and have no capabilities: with those they could end
the container's idle program, which is another user's. What the daemon must do for it, and nothing here can: map the
ids of containers (`dockerd --userns-remap`).
"""

from __future__ import annotations

import contextlib
import re

from sandbox.docker_daemon import Daemon
from sandbox.docker_sandbox import DockerSandbox
from sandbox.docker_system import System, SystemLayer
from sandbox.errors import SandboxUnavailable
from sandbox.family import Family
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine
from sandbox.types import CapabilityReport, SandboxSpec

_RUN_BYTES, _RUN_FILES = 64 << 10, 1024
_MAPPED = re.compile(r"/([1-9]\d*)\.([1-9]\d*)/?$")


class MappedFamily(Family):
    """A family whose host user is the root of the engine's mapping, which all sandboxes of the engine share."""

    def __init__(self, machine: Machine, uid: int) -> None:
        super().__init__(machine)
        self._claimed, self.uid = self.uid, uid

    def _end(self) -> None:
        self.uid = self._claimed
        super()._end()


class ImageSandbox(DockerSandbox):
    """See `sandbox.base.Sandbox`. Snapshots, forks and restores have the system as well as the workspace."""

    _system: System | None = None
    _next: System | None = None
    _run: Layer | None = None
    """What programs see as `/run`: this process has no user id in the file systems that the engine mounts there."""

    def __init__(
        self,
        daemon: Daemon,
        machine: Machine,
        spec: SandboxSpec,
        report: CapabilityReport,
        family: Family | None = None,
        layers: tuple[Layer, ...] = (),
    ) -> None:
        family, own = family or MappedFamily(machine, mapped_root(daemon)), family is None
        try:
            super().__init__(daemon, machine, spec, report, family, layers)
        finally:
            if own:  # the sandbox has counted itself
                family.release()

    def _stacked(self, layers: tuple[Layer, ...]) -> Stack:
        system = tuple(layer for layer in layers if isinstance(layer, SystemLayer))
        self._next = System(self.machine, self._family.uid, self.limits.system_bytes, system)
        return super()._stacked(tuple(layer for layer in layers if not isinstance(layer, SystemLayer)))

    def _show(self) -> None:
        assert self._container is not None
        if self._next is not None:
            old, self._system, self._next = self._system, self._next, None
            if old is not None:
                old.close()
        assert self._system is not None
        if self._run is None:
            self._run = Layer(self.machine, None, _RUN_BYTES, _RUN_FILES)
            self._container.cover_run(self._run.files)
        self._system.show(self._container)
        super()._show()

    def _hide(self) -> None:
        super()._hide()
        assert self._container is not None
        assert self._system is not None
        self._system.hide(self._container)

    def _freeze(self) -> tuple[Layer, ...]:
        self._quiet_stack()
        system = self._system
        assert system is not None
        if not system.upper.is_empty():
            system.require_room()
        files = super()._freeze()
        try:
            if system.upper.is_empty():
                return (*files, *system.freeze())
            self._hide()  # a layer must not be written by one overlay while another reads it
            try:
                return (*files, *system.freeze())
            finally:
                self._show()
        except BaseException:
            for layer in files:
                layer.release()
            raise

    def _disk_full(self) -> bool:
        return super()._disk_full() or (self._system is not None and self._system.is_full())

    def _release(self, last: contextlib.ExitStack) -> None:
        for system in (self._system, self._next):
            if system is not None:
                last.callback(system.close)
        if self._run is not None:
            last.callback(self._run.release)
        super()._release(last)


def is_mapped(daemon: Daemon) -> bool:
    """Whether the engine gives containers a user namespace."""
    options = daemon.info.get("SecurityOptions") or ()
    return any("userns" in option or "rootless" in option for option in options)


def mapped_root(daemon: Daemon) -> int:
    """Host user that containers have as root.

    Raises:
        SandboxUnavailable: the engine maps no ids, or does not say which.
    """
    found = _MAPPED.search(str(daemon.info.get("DockerRootDir", "")))
    if not is_mapped(daemon) or found is None or found[1] != found[2]:
        raise SandboxUnavailable(
            "profile='image' needs an engine that maps the ids of containers, the same for users and groups; "
            "start one with: dockerd --userns-remap=default"
        )
    return int(found[1])

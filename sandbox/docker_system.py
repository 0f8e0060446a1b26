"""The system of an image, made writable within a bound: an overlay of our own over each folder of its read-only root.

Docker cannot bound what it writes for a container on an ordinary disk, so it writes nothing: the writable layers are
the harness's own, each on a file system of bounded size, frozen and stacked like those of the workspace.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat

from sandbox import docker_mounts
from sandbox.docker_container import Container
from sandbox.errors import SandboxError, SandboxLost
from sandbox.files import WORKSPACE
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine

_APART = frozenset({"dev", "proc", "run", "sys", "tmp", WORKSPACE.lstrip("/")})
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STAGING = "layers"
_MAX_OPTIONS = 3900
"""What a mount's options may take: a page, with some to spare."""


class SystemLayer(Layer):
    """A layer with a folder for each folder of the root."""

    made: dict[str, tuple[int, int, int]] | None = None
    """Mode, user and group of each folder when it was made."""

    def prepare(self, machine: Machine, folders: dict[str, os.stat_result]) -> None:
        """Make the folders that overlays need, each like the one that it will cover."""
        if self.made is not None:
            return
        self.made = {name: (seen.st_mode, seen.st_uid, seen.st_gid) for name, seen in folders.items()}
        machine.launcher.call(self._make_scratch)
        root = self.open()
        try:
            for name, (mode, uid, gid) in self.made.items():
                os.mkdir(name, dir_fd=root)
                os.chown(name, uid, gid, dir_fd=root)
                os.chmod(name, stat.S_IMODE(mode), dir_fd=root)
        finally:
            os.close(root)

    def _make_scratch(self) -> None:
        for name in self.made or ():
            os.mkdir(os.path.join(self.work, name))

    def is_empty(self) -> bool:
        """Whether no folder was changed since it was made."""
        root = self.open()
        try:
            return all(
                _identity(os.stat(name, dir_fd=root)) == known and _is_bare(root, name)
                for name, known in (self.made or {}).items()
            )
        finally:
            os.close(root)


class System(Stack):
    """The writable layers over an image's root; `show` and `hide` while no program runs."""

    _folders: tuple[str, ...] = ()

    def show(self, container: Container) -> None:
        """Put the overlays in place.

        Raises:
            SandboxLost: the kernel refuses.
        """
        try:
            self._show(container)
        except OSError as error:
            raise SandboxLost(f"the image's system cannot be made writable: {error}") from error

    def hide(self, container: Container) -> None:
        """Take the overlays away, so that the layers can be frozen.

        Raises:
            SandboxLost: the kernel refuses.
        """
        folders, self._folders = self._folders, ()
        try:
            for name in folders:
                docker_mounts.remove(container.namespace, f"/{name}")
        except OSError as error:
            raise SandboxLost(f"the image's system cannot be taken away: {error}") from error

    def require_room(self) -> None:
        """Refuse one more layer where the options of a mount would not hold it.

        Raises:
            SandboxError: too many snapshots were taken, one after the other.
        """
        longest = max(map(len, self._folders), default=0)
        if (len(self.frozen) + 3) * (len(f"/run/{_STAGING}/999/u/:") + longest) > _MAX_OPTIONS:
            raise SandboxError(
                f"{len(self.frozen)} snapshots lie over one another, and the system of an image takes no more; "
                "restore an earlier one"
            )

    def _show(self, container: Container) -> None:
        folders = _folders_of(container.root)
        layers = [self.upper, *self.frozen]
        staging = f"/run/{_STAGING}"
        os.mkdir(_STAGING, 0o700, dir_fd=container.notices)
        held = os.open(_STAGING, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=container.notices)
        with contextlib.ExitStack() as last:
            last.callback(os.rmdir, _STAGING, dir_fd=container.notices)
            last.callback(os.close, held)
            if self.frozen:  # a folder of the nearest one may have another mode than the image's
                folders = self._seen_above(folders)
            assert isinstance(self.upper, SystemLayer)
            self.upper.prepare(self._machine, folders)
            for number, layer in enumerate(layers):
                os.mkdir(str(number), dir_fd=held)
                last.callback(os.rmdir, str(number), dir_fd=held)
                home = os.path.dirname(layer.files)
                container.place(docker_mounts.copy(self._machine.launcher, home), f"{staging}/{number}")
                last.callback(docker_mounts.remove, container.namespace, f"{staging}/{number}")
            for name in folders:
                lower = [f"{staging}/{number}/u/{name}" for number in range(1, len(layers))]
                docker_mounts.overlay(
                    container.namespace,
                    f"/{name}",
                    lower=[*lower, f"/{name}"],
                    upper=f"{staging}/0/u/{name}",
                    work=f"{staging}/0/w/{name}",
                )
                self._folders = (*self._folders, name)

    def _seen_above(self, folders: dict[str, os.stat_result]) -> dict[str, os.stat_result]:
        root = self.frozen[0].open()
        try:
            return {name: os.stat(name, dir_fd=root) for name in folders}
        finally:
            os.close(root)

    def _layer(self, size_bytes: int, inodes: int) -> Layer:
        return self._new_layer(SystemLayer, size_bytes, inodes)


def _folders_of(root: int) -> dict[str, os.stat_result]:
    found = {}
    for name in sorted(os.listdir(root)):
        seen = os.stat(name, dir_fd=root, follow_symlinks=False)
        if stat.S_ISDIR(seen.st_mode) and name not in _APART and _NAME.fullmatch(name):
            found[name] = seen
    return found


def _identity(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_mode, seen.st_uid, seen.st_gid


def _is_bare(root: int, name: str) -> bool:
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    finally:
        os.close(folder)

"""Workspace storage: layers, each on a bounded tmpfs of its own where the launcher can mount one.

A workspace is one writable layer over a stack of frozen ones. To freeze it, the writable layer joins the stack and a
new one takes its place: for the parent as for the child of a fork, because a folder must not be written by one
overlay while another reads it.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from sandbox import disks, files
from sandbox.errors import SandboxPathError
from sandbox.removal import remove_tree

if TYPE_CHECKING:
    from sandbox.machine import Machine

_FLOOR_BYTES, _FLOOR_INODES = 16 * 1024, 64
_MOUNT_INODES = 16  # what mounting an overlay takes of its writable layer, with some to spare
LARGE_BYTES = 256 << 20
"""From here on a workspace lies on disk: a tmpfs is memory, and charged to the programs that fill it."""
_numbers = itertools.count(1)


class Room(NamedTuple):
    """Of a layer: bytes by whole pages, and files."""

    size_bytes: int
    inodes: int


class Layer:
    """One folder tree, counted by its users and removed with the last of them.

    `files` is the tree; `work` is the scratch folder that overlayfs wants beside a writable layer, and `merged` is
    where it may be mounted together with the layers below.
    """

    def __init__(
        self, machine: Machine, uid: int | None, size_bytes: int, inodes: int, *, on_disk: bool = False
    ) -> None:
        self._machine, self._users, self._lock = machine, 1, threading.Lock()
        self._name = f"{next(_numbers):x}"
        self._frozen_bytes: int | None = None
        self._path = os.path.join(machine.base, self._name)
        self.files, self.work = os.path.join(self._path, "u"), os.path.join(self._path, "w")
        self.merged = os.path.join(self._path, "m")
        self.size_bytes, self.inodes = max(size_bytes, _FLOOR_BYTES), max(inodes, _FLOOR_INODES)
        machine.launcher.call(lambda: self._make(uid, on_disk))

    def open(self, *, merged: bool = False) -> int:
        """A descriptor of the tree's root, usable in every thread; with `merged`, of what is mounted there.

        Raises:
            SandboxPathError: a program took its permissions away, and the harness is not root.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            return os.open(f"{self._name}/{'m' if merged else 'u'}", flags, dir_fd=self._machine.base_fd)
        except PermissionError as error:
            raise SandboxPathError(
                "the workspace cannot be read: a program took its permissions away"
            ) from error

    def used(self) -> Room:
        """What is taken; nothing where layers are not bounded."""
        stat = self._statvfs()
        if stat is None:
            return Room(0, 0)
        return Room((stat.f_blocks - stat.f_bfree) * stat.f_frsize, stat.f_files - stat.f_ffree)

    def left(self) -> Room | None:
        """What is free; None where layers are not bounded."""
        stat = self._statvfs()
        return None if stat is None else Room(stat.f_bfree * stat.f_frsize, stat.f_ffree)

    def _statvfs(self) -> os.statvfs_result | None:
        if not self._machine.bounded_layers:
            return None
        fd = self.open()
        try:
            return os.fstatvfs(fd)
        finally:
            os.close(fd)

    def share_bytes(self) -> int:
        """Bytes taken, divided among its users."""
        if self._frozen_bytes is None:
            fd = self.open()
            try:
                self._frozen_bytes = self.used().size_bytes or files.disk_bytes(fd)
            finally:
                os.close(fd)
        return self._frozen_bytes // max(self._users, 1)

    def is_empty(self) -> bool:
        """Whether nothing was written since it was made."""
        fd = self.open()
        try:
            with os.scandir(fd) as entries:
                return next(entries, None) is None
        finally:
            os.close(fd)

    def acquire(self) -> Layer:
        """Count one more user."""
        with self._lock:
            self._users += 1
        return self

    def release(self) -> None:
        """Count one user less; the last one removes the files."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self._machine.launcher.call(self._remove)

    def _make(self, uid: int | None, on_disk: bool) -> None:
        os.mkdir(self._path, 0o711)
        os.chmod(self._path, 0o711)
        if not self._machine.bounded_layers:
            pass
        elif not (on_disk and disks.mount(self._path, self.size_bytes, self.inodes)):
            self._machine.launcher.mount_tmpfs(
                self._path, size_bytes=self.size_bytes, inodes=self.inodes, mode=0o711
            )
        for path in (self.files, self.work):
            os.mkdir(path, 0o755)
            os.chmod(path, 0o755)
            if uid is not None:
                os.chown(path, uid, uid)

    def _remove(self) -> None:
        if self._machine.bounded_layers:
            self._machine.launcher.unmount(self._path)
            os.rmdir(self._path)
            return
        remove_tree(self._path)


class Stack:
    """A writable layer over frozen ones (`frozen[0]` is the nearest); it owns one use of each."""

    def __init__(
        self, machine: Machine, uid: int | None, size_bytes: int, frozen: tuple[Layer, ...] = ()
    ) -> None:
        self._machine, self._uid, self._size_bytes = machine, uid, size_bytes
        self._inodes = 1024 + size_bytes // 4096
        self.frozen = tuple(layer.acquire() for layer in frozen)
        self._mounted = False
        self.upper = self._new_upper()

    def open(self) -> list[int]:
        """Descriptors of all roots, the writable one first; the caller closes them."""
        if self._mounted:
            return [self.upper.open(merged=True)]
        opened: list[int] = []
        try:
            for layer in (self.upper, *self.frozen):
                opened.append(layer.open())
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        return opened

    def freeze(self) -> tuple[Layer, ...]:
        """All files as frozen layers, each acquired for the caller; writing goes on in a new layer."""
        if not self.upper.is_empty():
            self.unmount()
            self.frozen = (self.upper, *self.frozen)
            self.upper = self._new_upper()
        return tuple(layer.acquire() for layer in self.frozen)

    def replace(self, upper: Layer, merged: int) -> None:
        """Take a layer that holds the writable one and the `merged` nearest frozen ones, and drop those."""
        self.unmount()
        old = (self.upper, *self.frozen[:merged])
        self.upper, self.frozen = upper, self.frozen[merged:]
        for layer in old:
            layer.release()

    def blank(self) -> Layer:
        """An empty layer for `replace`, of the full size or of what all layers hold, where that is more."""
        taken = self._taken(self.upper, *self.frozen)
        size_bytes = max(self._size_bytes, taken.size_bytes + _FLOOR_BYTES)
        return self._layer(size_bytes, max(self._inodes, taken.inodes + _FLOOR_INODES))

    def is_full(self) -> bool:
        """Whether not a byte or not a file more can be written."""
        left = self.upper.left()
        return left is not None and (left.size_bytes == 0 or left.inodes == 0)

    def is_cramped(self) -> bool:
        """Whether it should be flattened before a program starts.

        What a program deletes of a frozen layer frees nothing, and the overlay itself needs some room.
        """
        left = self.upper.left() if self.frozen else None
        return left is not None and (left.inodes < _MOUNT_INODES or left.size_bytes == 0)

    def to_merge(self) -> int:
        """How many of the nearest frozen layers to merge with the writable one before more is stacked on them.

        A mount's option string is limited to a page, and what frozen layers hide of one another is lost to the
        writable one. A layer that holds more than all others together, such as a big initial workspace, is left
        where it is, so that small changes do not copy it.
        """
        sizes = [layer.used().size_bytes for layer in self.frozen]
        total = sum(sizes)
        wasteful = total > self._size_bytes // 2 and total - sizes[-1] > self._size_bytes // 4
        if wasteful or not self._machine.overlay:
            return len(sizes)
        if len(sizes) <= self._machine.max_layers:
            return 0
        biggest = sizes.index(max(sizes))
        above_rest = 2 * sizes[biggest] > total and len(sizes) - biggest <= self._machine.max_layers // 2
        return biggest if above_rest else len(sizes)

    def mount(self) -> bool:
        """Merge the layers by a mount that programs and this process share; whether that is possible here.

        A program that lives on, a shell, could otherwise not see what this process writes meanwhile.
        """
        if self.frozen and not self._mounted and self._machine.bounded_layers:
            try:
                self._machine.launcher.call(self._mount)
            except OSError:  # a kernel without overlays of this kind
                return False
            self._mounted = True
        return self._mounted or not self.frozen

    def unmount(self) -> None:
        """Undo `mount`; no program may be running."""
        mounted, self._mounted = self._mounted, False
        if mounted:
            self._machine.launcher.call(lambda: self._machine.launcher.unmount(self.upper.merged))

    def _mount(self) -> None:
        upper = self.upper
        os.makedirs(upper.merged, 0o755, exist_ok=True)
        lower = [layer.files for layer in self.frozen]
        self._machine.launcher.mount_overlay(upper.merged, lower=lower, upper=upper.files, work=upper.work)

    @property
    def shown(self) -> str:
        """Where the launcher's namespace shows all files, once `mount` said that it can."""
        return self.upper.merged if self._mounted else self.upper.files

    def mount_arguments(self) -> list[str]:
        """The bubblewrap arguments that show it as `/workspace`."""
        if not self.frozen or self._mounted:
            return ["--bind", self.shown, "/workspace"]
        sources = [word for layer in reversed(self.frozen) for word in ("--overlay-src", layer.files)]
        return [*sources, "--overlay", self.upper.files, self.upper.work, "/workspace"]

    def close(self) -> None:
        """Give up all layers."""
        self.unmount()
        for layer in (self.upper, *self.frozen):
            layer.release()
        self.frozen = ()

    def _new_upper(self) -> Layer:
        taken = self._taken(*self.frozen)
        # Files are bounded more loosely than bytes: deleting what is frozen takes one each.
        inodes = self._inodes if taken.inodes <= self._inodes else 0
        return self._layer(self._size_bytes - taken.size_bytes, inodes)

    def _layer(self, size_bytes: int, inodes: int) -> Layer:
        return self._new_layer(Layer, size_bytes, inodes)

    def _new_layer(self, kind: type[Layer], size_bytes: int, inodes: int) -> Layer:
        on_disk = self._size_bytes >= LARGE_BYTES
        return kind(self._machine, self._uid, size_bytes, inodes, on_disk=on_disk)

    @staticmethod
    def _taken(*layers: Layer) -> Room:
        used = [layer.used() for layer in layers]
        return Room(sum(room.size_bytes for room in used), sum(room.inodes for room in used))

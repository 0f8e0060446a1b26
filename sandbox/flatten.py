"""Copying a stack of layers into a single one."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sandbox import files
from sandbox.errors import SandboxPathError

if TYPE_CHECKING:
    from sandbox.layers import Stack

_MODE = 0o7777
_LEVELS = 16  # copied in one go; what lies deeper is come back to, so that few descriptors are open at once
_STEPS = 1_000_000  # folders entered on the way back to what lies deeper
_PATH_BYTES = 4000  # of the kernel's 4096
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def merge(stack: Stack, merged: int, uid: int | None) -> None:
    """Copy a stack's writable layer and the `merged` nearest frozen ones into one; no program may be running.

    Raises:
        SandboxPathError: see `flatten`.
    """
    stack.unmount()
    blank = stack.blank()
    roots: list[int] = []
    try:
        roots = [*stack.open(), blank.open()]
        flatten(roots[: 1 + merged], roots[-1], uid, marks=merged < len(stack.frozen))
    except BaseException:
        blank.release()
        raise
    finally:
        for fd in roots:
            os.close(fd)
    stack.replace(blank, merged)


def flatten(roots: list[int], target: int, uid: int | None, *, marks: bool = False) -> None:
    """Copy what a merged view shows into the empty folder `target`; no program may run in either meanwhile.

    Modes, times, links (hard ones as such where their path is not too long) and named pipes are kept; sockets are
    left out; holes stay holes. Folders may nest to any depth. With `marks`, the copy is to lie over further layers:
    what hides their entries is kept too.

    Raises:
        SandboxPathError: it does not fit, or a file may not be read.
    """
    try:
        _Copy(tuple(roots), target, uid, marks).run()
    except OSError as error:
        raise SandboxPathError(f"the workspace cannot be copied: {error.strerror or error}") from error


class _Copy:
    def __init__(self, roots: tuple[int, ...], target: int, uid: int | None, marks: bool) -> None:
        self._roots, self._target, self._uid, self._marks = roots, target, uid, marks
        self._pending: list[tuple[str, ...]] = [()]
        self._linked: dict[tuple[int, int], str] = {}
        self._steps = 0

    def run(self) -> None:
        while self._pending:
            path = self._pending.pop()
            with ExitStack() as opened:
                folders, target = self._enter(opened, path)
                self._folder(path, folders, target, _LEVELS)

    def _enter(self, opened: ExitStack, path: tuple[str, ...]) -> tuple[tuple[int, ...], int]:
        """Open a folder of both sides by its path, holding one level at a time."""
        self._steps += len(path)
        if self._steps > _STEPS:
            raise SandboxPathError("the workspace nests too deep in too many places; it cannot be copied")
        folders, target, held = self._roots, self._target, ExitStack()
        for name in path:
            with held:
                level = ExitStack()
                opened.push(level)
                entry = files.find(level, folders, name)
                target = os.open(name, _FOLDER, dir_fd=target)
                level.callback(os.close, target)
                folders = entry.folders if entry is not None else ()
            held = level
        return folders, target

    def _folder(self, path: tuple[str, ...], folders: tuple[int, ...], target: int, levels: int) -> None:
        names = dict.fromkeys(name for folder in folders for name in sorted(os.listdir(folder)))
        for name in names:
            with ExitStack() as opened:
                entry = files.find(opened, folders, name)
                if entry is None:
                    if self._marks:
                        os.mknod(name, stat.S_IFCHR, 0, dir_fd=target)
                    continue
                if not entry.folders:
                    self._entry(opened, entry, (*path, name), target)
                    continue
                os.mkdir(name, 0o700, dir_fd=target)
                fd = os.open(name, _FOLDER, dir_fd=target)
                opened.callback(os.close, fd)
                if self._marks and _hides(folders, entry, name):
                    os.setxattr(fd, files.OPAQUE, b"y")
                if levels == 1:
                    self._pending.append((*path, name))
                    continue
                self._folder((*path, name), entry.folders, fd, levels - 1)
        status = os.fstat(folders[0])
        if self._uid is not None:
            os.fchown(target, self._uid, self._uid)
        os.fchmod(target, stat.S_IMODE(status.st_mode) & _MODE)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _entry(self, opened: ExitStack, entry: files.Entry, path: tuple[str, ...], target: int) -> None:
        status, name = entry.status, path[-1]
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(name, dir_fd=entry.holder), name, dir_fd=target)
        elif stat.S_ISREG(status.st_mode):
            if self._link(status, path, target):
                return
            _copy_file(opened, entry, name, target)
        elif stat.S_ISFIFO(status.st_mode):
            os.mkfifo(name, 0o600, dir_fd=target)
        else:
            return
        if self._uid is not None:
            os.chown(name, self._uid, self._uid, dir_fd=target, follow_symlinks=False)
        if not stat.S_ISLNK(status.st_mode):
            os.chmod(name, stat.S_IMODE(status.st_mode) & _MODE, dir_fd=target)
        times = (status.st_atime_ns, status.st_mtime_ns)
        os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)

    def _link(self, status: os.stat_result, path: tuple[str, ...], target: int) -> bool:
        """Make a further name of a file that was copied; False if this is its first."""
        if status.st_nlink == 1:
            return False
        key, shown = (status.st_dev, status.st_ino), "/".join(path)
        if (first := self._linked.get(key)) is not None:
            os.link(first, path[-1], src_dir_fd=self._target, dst_dir_fd=target, follow_symlinks=False)
            return True
        if len(os.fsencode(shown)) < _PATH_BYTES:
            self._linked[key] = shown
        return False


def _hides(folders: tuple[int, ...], entry: files.Entry, name: str) -> bool:
    """Whether a folder of that name below `folders` is not merged with this one."""
    if files.is_opaque(entry.folders[-1]):
        return True
    return len(entry.folders) < sum(_has(folder, name) for folder in folders)


def _has(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _copy_file(opened: ExitStack, entry: files.Entry, name: str, target: int) -> None:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    source = os.open(name, os.O_RDONLY | flags, dir_fd=entry.holder)
    opened.callback(os.close, source)
    size = os.fstat(source).st_size
    copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600, dir_fd=target)
    opened.callback(os.close, copy)
    os.ftruncate(copy, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
            end = os.lseek(source, at, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole follows
                return
            raise
        os.lseek(source, at, os.SEEK_SET)
        os.lseek(copy, at, os.SEEK_SET)
        while at < end:
            chunk = os.read(source, min(1 << 20, end - at))
            if not chunk:
                return
            at += len(chunk)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(copy, rest) :]

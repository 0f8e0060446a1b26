"""Copying a stack of layers into a single one."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from sandbox import files
from sandbox.errors import SandboxPathError

if TYPE_CHECKING:
    from sandbox.layers import Stack

_MODE = 0o7777


class _Copy(NamedTuple):
    uid: int | None
    marks: bool


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
    """Copy what a merged view shows into the empty folder `target`.

    Modes, times, links (as links) and named pipes are kept; sockets are left out; a file with several hard links
    becomes several files; holes stay holes. With `marks`, the copy is to lie over further layers: what hides their
    entries is kept too.

    Raises:
        SandboxPathError: it nests deeper than `files.MAX_DEPTH`, or does not fit.
    """
    try:
        _copy_folder(tuple(roots), target, _Copy(uid, marks), 0)
    except OSError as error:
        raise SandboxPathError(f"the workspace cannot be copied: {error.strerror or error}") from error


def _copy_folder(folders: tuple[int, ...], target: int, how: _Copy, depth: int) -> None:
    if depth > files.MAX_DEPTH:
        raise SandboxPathError(
            f"the workspace nests deeper than {files.MAX_DEPTH} folders; it cannot be copied"
        )
    names = dict.fromkeys(name for folder in folders for name in sorted(os.listdir(folder)))
    for name in names:
        with ExitStack() as opened:
            entry = files.find(opened, folders, name)
            if entry is not None:
                hides = how.marks and bool(entry.folders) and _hides(folders, entry, name)
                _copy_entry(opened, entry, name, target, how, depth, hides)
            elif how.marks:
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=target)
    status = os.fstat(folders[0])
    os.fchmod(target, stat.S_IMODE(status.st_mode) & _MODE)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


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


def _copy_entry(
    opened: ExitStack, entry: files.Entry, name: str, target: int, how: _Copy, depth: int, hides: bool
) -> None:
    mode = entry.status.st_mode
    times = (entry.status.st_atime_ns, entry.status.st_mtime_ns)
    if entry.folders:
        os.mkdir(name, 0o700, dir_fd=target)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target)
        opened.callback(os.close, fd)
        if hides:
            os.setxattr(fd, files.OPAQUE, b"y")
        _copy_folder(entry.folders, fd, how, depth + 1)
        if how.uid is not None:
            os.fchown(fd, how.uid, how.uid)
        return
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(name, dir_fd=entry.holder), name, dir_fd=target)
    elif stat.S_ISREG(mode):
        _copy_file(opened, entry, name, target)
    elif stat.S_ISFIFO(mode):
        os.mkfifo(name, 0o600, dir_fd=target)
    else:
        return
    if how.uid is not None:
        os.chown(name, how.uid, how.uid, dir_fd=target, follow_symlinks=False)
    if not stat.S_ISLNK(mode):
        os.chmod(name, stat.S_IMODE(mode) & _MODE, dir_fd=target)
    os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)


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

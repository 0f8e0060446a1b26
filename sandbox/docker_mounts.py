"""Putting this process's mounts into a running container.

The daemon cannot bind what only the launcher's mount namespace holds. So a copy of the mount is opened as a
descriptor there, and a thread that enters the container's mount namespace puts it in place: the host's namespace sees
nothing of it, and it ends with the container. Linux 5.12 is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import threading
from collections.abc import Callable, Sequence

from sandbox.launcher import Launcher

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on x86_64 and aarch64
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_AT_FDCWD, _AT_EMPTY_PATH = -100, 0x1000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_READ_ONLY, _MNT_DETACH = 1, 2
_NO_SUID, _NO_DEVICES = 2, 4
_libc = ctypes.CDLL(None, use_errno=True)


def supported() -> bool:
    """Whether the numbers of the calls are known for this architecture."""
    return platform.machine() in ("x86_64", "aarch64")


def copy(launcher: Launcher, source: str, *, read_only: bool = False) -> int:
    """A descriptor of a copy of what a path of the launcher's namespace shows; the caller closes it.

    Raises:
        OSError: as open_tree(2).
    """

    def go() -> int:
        flags = ctypes.c_uint(_OPEN_TREE_CLONE | os.O_CLOEXEC)
        fd = _libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), flags)
        _check(fd, "open_tree", source)
        return int(fd)

    fd = launcher.call(go)
    if read_only:
        try:
            _make_read_only(fd, b"", source)
        except BaseException:
            os.close(fd)
            raise
    return fd


def place(namespace: int, fd: int, target: str) -> None:
    """Mount a copy at an absolute path of a mount namespace, given by its descriptor.

    Raises:
        OSError: as setns(2) and move_mount(2).
    """

    def go() -> None:
        moved = _libc.syscall(
            _MOVE_MOUNT, fd, b"", _AT_FDCWD, os.fsencode(target), ctypes.c_uint(_MOVE_MOUNT_F_EMPTY_PATH)
        )
        _check(moved, "move_mount", target)

    _within(namespace, go)


def remove(namespace: int, target: str) -> None:
    """Detach what is mounted last at a path of a mount namespace.

    Raises:
        OSError: as setns(2) and umount2(2).
    """
    _within(namespace, lambda: _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), "umount2", target))


def overlay(namespace: int, target: str, *, lower: Sequence[str], upper: str, work: str) -> None:
    """Mount an overlay at a path of a mount namespace; all paths are of that namespace and may hold no comma or colon.

    Raises:
        OSError: as setns(2) and mount(2).
    """
    options = f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work}".encode()
    flags = ctypes.c_ulong(_NO_SUID | _NO_DEVICES)
    _within(
        namespace,
        lambda: _check(
            _libc.mount(b"overlay", os.fsencode(target), b"overlay", flags, options), "mount overlay", target
        ),
    )


def make_read_only(namespace: int, targets: Sequence[str]) -> None:
    """Make the mounts at absolute paths of a mount namespace read-only.

    Raises:
        OSError: as setns(2) and mount_setattr(2).
    """

    def go() -> None:
        for target in targets:
            _make_read_only(_AT_FDCWD, os.fsencode(target), target)

    _within(namespace, go)


def _make_read_only(fd: int, path: bytes, shown: str) -> None:
    settings = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(settings))
    flags = ctypes.c_uint(0 if path else _AT_EMPTY_PATH)
    _check(_libc.syscall(_MOUNT_SETATTR, fd, path, flags, settings, size), "mount_setattr", shown)


def _within(namespace: int, job: Callable[[], None]) -> None:
    """Run a job in a thread that lives only for it, because nothing else may run with the container's root."""
    errors: list[BaseException] = []

    def go() -> None:
        try:
            _check(_libc.unshare(_CLONE_FS), "unshare", "/")
            _check(_libc.setns(namespace, _CLONE_NEWNS), "setns", "mnt")
            job()
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who waits for it
            errors.append(error)

    thread = threading.Thread(target=go, name="sandbox-docker-mount")
    thread.start()
    thread.join()
    with contextlib.ExitStack() as last:
        last.callback(errors.clear)  # no cycle with the traceback
        if errors:
            raise errors[0]


def _check(result: int, call: str, path: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{call}: {os.strerror(code)}", path)

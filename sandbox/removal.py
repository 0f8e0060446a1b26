"""Removing a folder tree that a program made: any depth, any names, any modes, no links followed."""

from __future__ import annotations

import errno
import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(path: str, *, dir_fd: int | None = None) -> None:
    """Remove a folder and everything beneath it; nothing happens where it is absent.

    Folders found inside are first moved up to the top, so that depth costs neither descriptors nor path length. No
    program may be working in it any more.

    Raises:
        OSError: something cannot be removed, or is on another file system.
    """
    try:
        _open_up(path, dir_fd)
        top = os.open(path, _FOLDER, dir_fd=dir_fd)
    except FileNotFoundError:
        return
    try:
        device = os.fstat(top).st_dev
        waiting = _empty(top, top, device, 0)
        moved = len(waiting)
        while waiting:
            name = waiting.pop()
            _open_up(name, top)
            folder = os.open(name, _FOLDER, dir_fd=top)
            try:
                found = _empty(folder, top, device, moved)
            finally:
                os.close(folder)
            moved += len(found)
            waiting += found
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(path, dir_fd=dir_fd)


def _empty(folder: int, top: int, device: int, number: int) -> list[str]:
    """Remove the files of a folder, and its folders if they are empty; the others go to the top, under new names."""
    if os.fstat(folder).st_dev != device:
        raise OSError(errno.EXDEV, "another file system is mounted in the tree; unmount it first")
    moved: list[str] = []
    for name in os.listdir(folder):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            continue
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES):
                raise
            _open_up(name, folder)  # moving a folder rewrites its entry `..`
            new = _free_name(top, number + len(moved))
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=top)
            moved.append(new)
    return moved


def _free_name(top: int, number: int) -> str:
    while True:
        name = f".removed-{number:x}"
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name
        number += 1 << 32  # a program chose this very name


def _open_up(name: str, folder: int | None) -> None:
    """Give an owner that is not root back the permissions that a program took away."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=folder)

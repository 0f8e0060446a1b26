"""Reading and writing a workspace from the host, one path component at a time and never through a link.

Every step opens a single name relative to a descriptor with O_NOFOLLOW, so a program that swaps folders for links
meanwhile gains nothing. Over a stack of layers the rules of overlayfs apply: the uppermost entry wins, a character
device 0:0 hides what lies below, and an opaque folder ends the search.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from sandbox.errors import SandboxPathError

WORKSPACE = "/workspace"
MAX_DEPTH = 100
OPAQUE = "user.overlay.opaque"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Entry:
    """What a name stands for: its status in the uppermost layer, and the merged folders' descriptors if it is one."""

    status: os.stat_result
    holder: int
    folders: tuple[int, ...] = ()


def components(path: str) -> list[str]:
    """Split a path relative to the workspace (or beginning with `/workspace`).

    Raises:
        SandboxPathError: it leaves the workspace, or nests too deep.
    """
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise SandboxPathError(f"{path!r} cannot be encoded as UTF-8; give another name") from error
    if path == WORKSPACE or path.startswith(WORKSPACE + "/"):
        path = path[len(WORKSPACE) + 1 :]
    elif path.startswith("/"):
        raise SandboxPathError(f"{path!r} lies outside {WORKSPACE}; give a path relative to it")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names or "\0" in path:
        raise SandboxPathError(f"{path!r} contains '..' or a NUL byte; give a plain path beneath {WORKSPACE}")
    if len(names) > MAX_DEPTH:
        raise SandboxPathError(f"{path[:80]!r}... nests {len(names)} deep; the limit is {MAX_DEPTH}")
    return names


def find(opened: ExitStack, folders: tuple[int, ...], name: str) -> Entry | None:
    """Look a name up in a merged folder; descriptors that it opens are closed with `opened`.

    Raises:
        OSError: a folder cannot be opened.
    """
    first: tuple[os.stat_result, int] | None = None
    merged: list[int] = []
    for folder in folders:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if is_whiteout(status):
            break
        first = first or (status, folder)
        if not stat.S_ISDIR(status.st_mode):
            break
        fd = os.open(name, _FOLDER, dir_fd=folder)
        opened.callback(os.close, fd)
        merged.append(fd)
        if is_opaque(fd):
            break
    if first is None:
        return None
    return Entry(*first, tuple(merged))


def require_folder(roots: list[int], cwd: str) -> None:
    """Refuse a folder that its owner cannot enter.

    Raises:
        SandboxPathError: it is no folder, or a program took its permissions away.
    """
    with ExitStack() as opened:
        folders, status = tuple(roots), os.fstat(roots[0])
        for name in ("", *components(cwd)):
            if name:
                entry = find(opened, folders, name)
                folders = entry.folders if entry is not None else ()
                status = entry.status if entry is not None else status
            if not folders or not status.st_mode & stat.S_IXUSR:
                raise SandboxPathError(f"cwd {cwd!r} is not a folder that can be entered; create it first")


def is_whiteout(status: os.stat_result) -> bool:
    """Whether an entry of a layer says that what lies below was deleted."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def is_opaque(folder: int) -> bool:
    """Whether a folder of a layer hides the folders of that name below."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


def disk_bytes(folder: int, depth: int = 0) -> int:
    """Bytes that a tree takes on its disk, folders deeper than `MAX_DEPTH` left out.

    Raises:
        OSError: a folder cannot be opened.
    """
    total = 0
    for name in os.listdir(folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        total += status.st_blocks * 512
        if stat.S_ISDIR(status.st_mode) and depth < MAX_DEPTH:
            fd = os.open(name, _FOLDER, dir_fd=folder)
            try:
                total += disk_bytes(fd, depth + 1)
            finally:
                os.close(fd)
    return total


@contextmanager
def _path_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        what = "the workspace is full" if full else (error.strerror or str(error)).lower()
        raise SandboxPathError(f"{path!r}: {what}") from error


def read(roots: list[int], path: str, max_bytes: int) -> bytes:
    """Contents of a regular file.

    Raises:
        SandboxPathError: absent, not a regular file, behind a link, or larger than `max_bytes`.
    """
    names = components(path)
    with _path_errors(path), ExitStack() as opened:
        folders, entry = tuple(roots), None
        for index, name in enumerate(names):
            entry = find(opened, folders, name)
            if entry is None:
                raise SandboxPathError(f"{path!r} does not exist")
            folders = entry.folders
            if index < len(names) - 1 and not folders:
                raise SandboxPathError(
                    f"{'/'.join(names[: index + 1])!r} is not a folder (links are not followed)"
                )
        if entry is None or folders:
            raise SandboxPathError(f"{path!r} is a folder; give the path of a file")
        return _read_regular(path, entry, names[-1], max_bytes)


def _read_regular(path: str, entry: Entry, name: str, max_bytes: int) -> bytes:
    _require_regular(path, entry.status)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    fd = os.open(name, flags, dir_fd=entry.holder)
    with os.fdopen(fd, "rb", buffering=0) as file:
        status = os.fstat(fd)
        _require_regular(path, status)
        data = bytearray()
        while len(data) <= max_bytes and (chunk := file.read(min(1 << 20, max_bytes + 1 - len(data)))):
            data += chunk
    if len(data) > max_bytes:
        raise SandboxPathError(
            f"{path!r} is larger than {max_bytes} bytes ({status.st_size}); raise max_bytes"
        )
    return bytes(data)


def _require_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SandboxPathError(f"{path!r} is not a regular file (links are not followed)")


def write(roots: list[int], path: str, data: bytes, uid: int | None) -> None:
    """Write a regular file into the uppermost layer, parents made, replacing what is there in one step.

    Args:
        roots: Descriptors of the layers' roots, the writable one first.
        path: Relative to the workspace.
        data: Contents.
        uid: Owner of what is made; None leaves it to this process.

    Raises:
        SandboxPathError: it leaves the workspace, crosses a link, is a folder, or does not fit.
    """
    names = components(path)
    if not names:
        raise SandboxPathError(f"{path!r} is the workspace itself; give the path of a file")
    with _path_errors(path), ExitStack() as opened:
        folders = tuple(roots)
        for index, name in enumerate(names[:-1]):
            folders = _enter(opened, folders, name, uid, "/".join(names[: index + 1]))
        entry = find(opened, folders, names[-1])
        mode = 0o644
        if entry is not None:
            _require_regular(path, entry.status)
            mode = stat.S_IMODE(entry.status.st_mode) & 0o777
        _replace(folders[0], names[-1], data, mode, uid)


def _enter(
    opened: ExitStack, folders: tuple[int, ...], name: str, uid: int | None, shown: str
) -> tuple[int, ...]:
    """Go one folder down in the uppermost layer, making it there when only lower layers or none have it."""
    upper = folders[0]
    try:
        present = os.stat(name, dir_fd=upper, follow_symlinks=False)
    except FileNotFoundError:
        present = None
    entry = find(opened, folders, name)
    if entry is not None and not entry.folders:
        raise SandboxPathError(f"{shown!r} is not a folder (links are not followed)")
    if present is not None and not is_whiteout(present):
        if entry is None:  # a program of a shell moved it away between the two looks
            raise SandboxPathError(f"{shown!r} changed while it was looked up; try again")
        return entry.folders
    if present is not None:
        os.unlink(name, dir_fd=upper)
    os.mkdir(name, 0o755, dir_fd=upper)
    fd = os.open(name, _FOLDER, dir_fd=upper)
    opened.callback(os.close, fd)
    os.fchmod(fd, stat.S_IMODE(entry.status.st_mode) if entry else 0o755)
    if uid is not None:
        os.fchown(fd, uid, uid)
    if present is not None:  # it was deleted: what lies below must stay hidden
        os.setxattr(fd, OPAQUE, b"y")
    return (fd, *(entry.folders if entry else ()))


def _replace(folder: int, name: str, data: bytes, mode: int, uid: int | None) -> None:
    temporary = f".write-{secrets.token_hex(8)}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(fd, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) or 0 :]
            if uid is not None:
                os.fchown(fd, uid, uid)
            os.fchmod(fd, mode)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise

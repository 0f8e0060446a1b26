"""What a build may copy, or a root file system, as a tar archive: the same bytes for the same files."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import posixpath
import stat
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandbox import files
from sandbox.errors import ImageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_MEMORY, _CHUNK, _MAX_DEPTH = 16 << 20, 1 << 20, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimits:
    """How much may be handed to the daemon."""

    bytes: int = 256 << 20
    files: int = 50_000


class Archive:
    """A tar archive on its way to the daemon; its temporary file goes when it is closed.

    Raises:
        ImageError: too much, or something that may not be in it.
    """

    def __init__(self, limits: ContextLimits, *, root_system: bool = False) -> None:
        self._limits, self._root_system = limits, root_system
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - see close
        self._tar = tarfile.TarFile(fileobj=self.file, mode="w", format=tarfile.PAX_FORMAT)
        self._bytes = self._entries = 0

    def add_files(self, contents: Mapping[str, bytes]) -> None:
        """Add regular files by path."""
        for path, data in sorted(contents.items()):
            info = tarfile.TarInfo("/".join(files.components(path)))
            info.size, info.mode = len(data), 0o644
            self._add(info, io.BytesIO(data))

    def add_folder(self, folder: Path) -> None:
        """Add what lies beneath a folder: no link is followed, and none may lead out of a build's context."""
        try:
            fd = os.open(folder, _FOLDER)
        except OSError as error:
            raise ImageError(f"{folder} is no folder that can be read: {error.strerror}") from error
        try:
            self._walk(fd, "", 0)
        finally:
            os.close(fd)

    def digest(self) -> str:
        """The SHA-256 of what was added so far, in hexadecimal digits."""
        digest, left = hashlib.sha256(), self._tar.offset
        self.file.seek(0)
        while left and (data := self.file.read(min(left, _CHUNK))):
            digest.update(data)
            left -= len(data)
        self.file.seek(self._tar.offset)
        return digest.hexdigest()

    def finish(self) -> IO[bytes]:
        """The whole archive, to be read from its start."""
        self._tar.close()
        self.file.seek(0)
        return self.file

    def close(self) -> None:
        """Remove it."""
        self.file.close()

    def _walk(self, folder: int, prefix: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ImageError(f"folders are at most {_MAX_DEPTH} deep; {prefix[:100]}... is deeper")
        for name in sorted(os.listdir(folder)):
            path, status = f"{prefix}{name}", os.stat(name, dir_fd=folder, follow_symlinks=False)
            info = self._info(path, status)
            if stat.S_ISLNK(status.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=folder)
                self._check_link(path, info.linkname)
                self._add(info)
            elif stat.S_ISDIR(status.st_mode):
                info.type = tarfile.DIRTYPE
                self._add(info)
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    self._walk(inner, f"{path}/", depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(status.st_mode):
                with contextlib.closing(os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb")) as source:
                    opened = os.fstat(source.fileno())
                    if not stat.S_ISREG(opened.st_mode):
                        raise ImageError(f"{path!r} changed while it was read; build again")
                    info.size = opened.st_size
                    self._add(info, source)
            elif not self._root_system:  # a root file system may hold devices and sockets: they are left out
                raise ImageError(f"{path!r} is neither file, folder nor link; remove it from the context")

    def _info(self, path: str, status: os.stat_result) -> tarfile.TarInfo:
        info = tarfile.TarInfo(path)
        if self._root_system:
            info.mode, info.uid, info.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
        else:
            info.mode = 0o755 if status.st_mode & 0o111 else 0o644
        return info

    def _check_link(self, path: str, target: str) -> None:
        if self._root_system:
            return
        leads = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if target.startswith("/") or leads == ".." or leads.startswith("../"):
            raise ImageError(f"the link {path!r} leads out of the context, to {target!r}; remove it")

    def _add(self, info: tarfile.TarInfo, data: IO[bytes] | None = None) -> None:
        self._bytes, self._entries = self._bytes + info.size, self._entries + 1
        if self._bytes > self._limits.bytes or self._entries > self._limits.files:
            raise ImageError(
                f"at most {self._limits.files} files of {self._limits.bytes} bytes in all go into an image; "
                f"{info.name[:200]!r} is beyond; leave something out, or raise the limits"
            )
        try:
            self._tar.addfile(info, data)
        except (OSError, UnicodeError) as error:
            raise ImageError(f"{info.name[:200]!r} cannot be read: {error}") from error

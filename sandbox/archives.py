"""Archives into a workspace: regular files under caps, through tarfile's data filter; links and devices are refused."""

from __future__ import annotations

import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from typing import Self

from sandbox.base import Sandbox
from sandbox.errors import SandboxPathError
from sandbox.files import WORKSPACE
from sandbox.types import MIB

_HEADERS_BYTES = 4096
"""What an entry may take beside its content."""
_EXTENSION_BYTES = 8192
_EXTENSIONS = frozenset(
    (
        tarfile.XHDTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )
)
_DIGITS = re.compile(rb"[0-9]{65}")


def unpack(
    box: Sandbox, archive: bytes, *, into: str = ".", max_bytes: int = 64 * MIB, max_files: int = 10_000
) -> int:
    """Write the files of a tar archive, plain or gzipped, beneath a folder of the workspace; returns their number.

    Empty folders are left out, modes and owners are those of `Sandbox.write`.

    Raises:
        SandboxPathError: the archive is damaged, holds anything but files and folders, has a path that leaves the
            workspace, or unpacks to more than `max_bytes` or `max_files`; files before that entry are written.
    """
    written = 0
    for name, data in _files(archive, max_bytes, max_files):
        box.write(f"{into}/{name}", data)
        written += 1
    return written


def _files(archive: bytes, max_bytes: int, max_files: int) -> Iterator[tuple[str, bytes]]:
    left = max_bytes
    try:
        plain = _plain(archive, max_bytes + (max_files + 2) * _HEADERS_BYTES)
        file = io.BytesIO(plain)
        with tarfile.open(fileobj=file, mode="r:", tarinfo=_entry_type(file, max_files)) as tar:
            for number, member in enumerate(tar):
                if number >= max_files:
                    raise SandboxPathError(f"the archive has more than {max_files} entries; raise max_files")
                safe = _filtered(member)
                if safe.isdir():
                    continue
                if not safe.isreg() or safe.issparse():
                    raise SandboxPathError(
                        f"{member.name[:200]!r} is neither a plain file nor a folder; leave it out"
                    )
                left -= safe.size
                if left < 0:
                    raise SandboxPathError(
                        f"the archive unpacks to more than {max_bytes} bytes; raise max_bytes"
                    )
                content = tar.extractfile(safe)
                assert content is not None  # of a regular file
                yield safe.name, content.read(safe.size)
    except (
        tarfile.TarError,
        zlib.error,
        EOFError,
        OSError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        if isinstance(error, SandboxPathError):
            raise
        raise SandboxPathError(f"this is not a sound tar archive: {str(error)[:200]}") from error


def _entry_type(file: io.BytesIO, max_files: int) -> type[tarfile.TarInfo]:
    """An entry of the archive in `file` that bounds what describes other entries.

    tarfile takes time by the square of a run of digits there (before Python 3.11.10), copies what holds for all
    entries for each of them, and goes backwards by a negative size.
    """
    left = {False: _EXTENSION_BYTES + 1024 * max_files, True: _EXTENSION_BYTES}

    class Entry(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            entry = super().frombuf(buf, encoding, errors)
            if entry.size < 0:
                raise SandboxPathError("the archive has an entry of a negative size")
            if entry.type in _EXTENSIONS:
                for_all = entry.type == tarfile.XGLTYPE
                left[for_all] -= entry.size
                if entry.size > _EXTENSION_BYTES or left[for_all] < 0:
                    raise SandboxPathError(
                        f"the archive has headers of more than {_EXTENSION_BYTES} bytes; use shorter names"
                    )
                at = file.tell()
                if _DIGITS.search(file.getbuffer()[at : at + entry.size]):
                    raise SandboxPathError("the archive has a header with more than 64 digits in a row")
            return entry

    return Entry


def _plain(archive: bytes, most: int) -> bytes:
    """The archive without its compression, of at most `most` bytes: headers can be bombs as well as files."""
    if not archive.startswith(b"\x1f\x8b"):
        return archive
    unzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
    plain = unzip.decompress(archive, most)
    if unzip.unconsumed_tail:
        raise SandboxPathError(f"the archive unpacks to more than {most} bytes; raise max_bytes")
    return plain


def _filtered(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """What tarfile's data filter leaves of an entry.

    Python before 3.11.4 has none; there the rules of `unpack` and of `Sandbox.write` stand alone.
    """
    data_filter = getattr(tarfile, "data_filter", None)
    if data_filter is None:
        member.name = member.name.lstrip("/")
        return member
    filtered: tarfile.TarInfo = data_filter(member, WORKSPACE)
    return filtered

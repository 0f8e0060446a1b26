"""Source archives as files in memory: regular text-sized files only, nothing is written and nothing is run."""

from __future__ import annotations

import functools
import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from envs.errors import TaskError

MAX_FILE_BYTES, MAX_TOTAL_BYTES, MAX_FILES = 512 * 1024, 24 << 20, 3000
_LEFT_OUT = frozenset(
    {"doc", "docs", ".github", ".circleci", "benchmarks", "examples", "build", "dist", "fuzzing"}
)
"""Top folders without code or tests; copies of the package in `build` would show the originals."""


@functools.lru_cache(maxsize=32)
def read_sdist(path: str, sha256: str) -> Mapping[str, bytes]:
    """The files of a `.tar.gz` by path relative to its one top folder.

    Raises:
        TaskError: it is absent, differs from the hash, or is no archive within the limits.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error}; run `agent-rl prepare swe` again") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise TaskError(f"{path} is not the archive that the task was made from: its sha256 differs")
    found: dict[str, bytes] = {}
    size = 0
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = _plain(member.name)
                if not member.isreg() or not name or member.size > MAX_FILE_BYTES:
                    continue
                content = archive.extractfile(member)
                found[name] = content.read() if content is not None else b""
                size += member.size
                if size > MAX_TOTAL_BYTES or len(found) > MAX_FILES:
                    raise TaskError(f"{path} holds more than {MAX_FILES} files or {MAX_TOTAL_BYTES} bytes")
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise TaskError(f"{path} is no source archive: {error}") from error
    return MappingProxyType(found)


def _plain(name: str) -> str:
    """The path beneath the top folder; empty for what is left out."""
    parts = name.split("/")[1:]
    if not parts or ".." in parts or "" in parts or parts[0] in _LEFT_OUT or not name.isprintable():
        return ""
    return "/".join(parts)

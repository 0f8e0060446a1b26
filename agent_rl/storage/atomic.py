"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from agent_rl.storage.errors import FULL, StorageFull


def write(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content, or all of the new, even after a power cut.

    The new content goes to a hidden file in the same folder, is forced to disk, renamed over `path`, and the
    rename is forced to disk.

    Raises:
        StorageFull: there is no space; whatever stood at `path` is intact.
        OSError: the folder is not writable.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL:
            raise StorageFull(path, len(content), error.strerror or "disk full") from error
        raise


def sync_folder(folder: Path) -> None:
    """Force to disk which names a folder holds."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

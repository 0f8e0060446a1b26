"""Errors of storage.

OSError
└── StorageFull      no space left: nothing that was committed is lost
ValueError
└── DamagedFile      a file is not what this package wrote
"""

from __future__ import annotations

import errno
from pathlib import Path

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageFull(OSError):
    """The disk is full. Earlier files and rows are intact; the same command continues after space was made."""

    def __init__(self, path: Path, needed: int | None, reason: str) -> None:
        size = "" if needed is None else f", {needed} bytes needed"
        detail = f"no space for {path}{size} ({reason}); free some space and run the same command again"
        super().__init__(errno.ENOSPC, detail, str(path))
        self.path = path
        self.needed = needed

    def __str__(self) -> str:
        return str(self.strerror)


class DamagedFile(ValueError):
    """A file cannot be read back."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is not a whole file of this package ({reason}); delete it, or restore it from a copy"
        )
        self.path = path

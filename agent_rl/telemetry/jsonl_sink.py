"""One JSON object a line: `{"step": 3, "time": 1712345678.9, "rollout/success": 0.5, ...}`.

The file is only ever appended to, a line at a time, and holds whole lines: a line that a crash or a full disk cut
is removed when the file is opened again. A resumed run repeats steps; the last line of a step counts.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import time
from pathlib import Path
from typing import Any

from agent_rl.types import Metrics


class JsonlSink:
    """Appends metrics to a file; every record has reached the operating system when `record` returns."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._opened: io.FileIO | None = None

    def _file(self) -> io.FileIO:
        # Opened by the first record: a run that was refused leaves no file.
        if self._opened is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _drop_cut_line(self.path)
            self._opened = io.FileIO(self.path, "ab")
        return self._opened

    def record(self, step: int, metrics: Metrics) -> None:
        """Write one line; numbers that are not finite become null.

        Raises:
            OSError: the disk is full or not writable; the file still holds whole lines.
        """
        values = {k: float(v) if math.isfinite(v) else None for k, v in metrics.items()}
        line = json.dumps({"step": step, "time": time.time(), **values}) + "\n"
        content = line.encode()
        file = self._file()
        before = file.seek(0, os.SEEK_END)
        try:
            written = file.write(content)
            if written != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        except OSError as error:
            file.truncate(before)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def close(self) -> None:
        """Close the file."""
        if self._opened is not None:
            self._opened.close()


def read_records(path: Path | str) -> list[dict[str, Any]]:
    """Records of a file in the order of steps, the last of each step; a cut last line is skipped.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: a line is not a record; the message names it.
    """
    records: dict[int, dict[str, Any]] = {}
    lines = Path(path).read_bytes().split(b"\n")
    for i, line in enumerate(lines[:-1], 1):
        try:
            record = json.loads(line)
            records[int(record["step"])] = record
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}:{i}: a line must be an object with a step ({error}); delete it"
            ) from error
    return [records[step] for step in sorted(records)]


def _drop_cut_line(path: Path) -> None:
    """Cut the file behind its last line break."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        position = end
        while position > 0:
            start = max(position - 65536, 0)
            file.seek(start)
            found = file.read(position - start).rfind(b"\n")
            if found >= 0:
                position = start + found + 1
                break
            position = start
        if position < end:
            file.truncate(position)

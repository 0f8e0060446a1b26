"""What a stretch of work costs: wall-clock and processor seconds, peak memory of this process's children."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.proctree import children

_EVERY_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """`cpu_s`: of this process and of its children that ended meanwhile. `peak_bytes`: resident memory of all
    descendants together, sampled every 20 ms, less what they held before."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0


class Meter:
    """Holds the cost once the work is done."""

    def __init__(self) -> None:
        self.cost = Cost()


@contextmanager
def metered() -> Iterator[Meter]:
    """Measure what happens inside."""
    meter, done = Meter(), threading.Event()
    before, peak = _resident(), 0

    def watch() -> None:
        nonlocal peak
        while not done.wait(_EVERY_S):
            peak = max(peak, _resident() - before)

    watcher = threading.Thread(target=watch, name="cost", daemon=True)
    started, cpu = time.monotonic(), _cpu_s()
    watcher.start()
    try:
        yield meter
    finally:
        seconds, spent = time.monotonic() - started, _cpu_s() - cpu
        done.set()
        watcher.join()
        meter.cost = Cost(seconds=seconds, cpu_s=spent, peak_bytes=peak)


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _resident() -> int:
    total, waiting, page = 0, children(os.getpid()), os.sysconf("SC_PAGE_SIZE")
    while waiting:
        one = waiting.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * page
        except (OSError, IndexError, ValueError):  # gone meanwhile
            continue
        waiting += children(one)
    return total

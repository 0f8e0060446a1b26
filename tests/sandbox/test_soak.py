"""Many lives leave nothing and cost no memory: the short form always, 10,000 lives as a slow test."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
from pathlib import Path

import pytest

import sandbox
from sandbox import SandboxSpec
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL
from tests.sandbox.test_cleanup import traces


def _live() -> None:
    with sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"1"})) as box:
        assert box.exec(["/bin/cat", "f"]).stdout.text == "1"
        with box.fork() as child:
            assert child.exec(["/bin/bash", "-c", "setsid sleep 60 & echo 2 > f"]).ok
            assert child.read("f") == b"2\n"
        snapshot = box.snapshot()
        with contextlib.closing(box.shell()) as shell:
            assert shell.run("sleep 60 & echo 3 > f").ok
        box.restore(snapshot)
        snapshot.release()


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _soak(lives: int) -> None:
    for _ in range(30):
        _live()
    gc.collect()
    before, memory = traces(), _resident_bytes()
    for number in range(lives):
        _live()
        if number % 500 == 499:
            print(f"{number + 1} lives, {(_resident_bytes() - memory) / MIB:+.1f} MiB", flush=True)
    gc.collect()
    assert traces() == before
    assert _resident_bytes() - memory < 8 * MIB
    assert _dead_children() == 0


def _dead_children() -> int:
    try:
        return int(os.waitpid(-1, os.WNOHANG)[0] != 0)
    except ChildProcessError:
        return 0


def test_100_lives_leave_nothing() -> None:
    _soak(100)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_10_000_lives_leave_nothing() -> None:
    _soak(10_000)

"""Many lives leave nothing and cost no memory: short forms always, 10,000 lives (1,000 at a server) as slow tests."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sandbox
from sandbox import SandboxSpec
from sandbox.remote import connection
from sandbox.remote.serving import running
from sandbox.remote.settings import Settings
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL
from tests.sandbox.test_cleanup import traces

_SETTLE_S = 0.3


def live(backend: str) -> None:
    """One life: created, used, forked, snapshot, shell, restored, closed."""
    with sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"1"}), backend) as box:
        assert box.exec(["/bin/cat", "f"]).stdout.text == "1"
        with box.fork() as child:
            assert child.exec(["/bin/bash", "-c", "setsid sleep 60 & echo 2 > f"]).ok
            assert child.read("f") == b"2\n"
        snapshot = box.snapshot()
        with contextlib.closing(box.shell()) as shell:
            assert shell.run("sleep 60 & echo 3 > f").ok
        box.restore(snapshot)
        snapshot.release()


def soak(
    lives: int,
    backend: str = "bubblewrap",
    *,
    warm_up: int = 30,
    at_once: int = 1,
    rest: Callable[[], object] = lambda: None,
) -> None:
    """Live so many times after a warm-up; nothing is left in this process and no memory is lost.

    The warm-up lives `at_once` fill the pools of threads; `rest` puts down what is kept between lives.
    """
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(live, [backend] * warm_up))
    rest()
    gc.collect()
    time.sleep(_SETTLE_S)
    before, memory, started = traces(), resident_bytes(), time.monotonic()
    for number in range(1, lives + 1):
        live(backend)
        if number % max(1, min(500, lives // 10)) == 0:
            grown = (resident_bytes() - memory) / MIB
            print(f"{number} lives, {time.monotonic() - started:.0f} s, {grown:+.1f} MiB", flush=True)
    rest()
    gc.collect()
    time.sleep(_SETTLE_S)
    after = traces()
    assert after.pop("threads") <= before.pop("threads")  # type: ignore[operator]  # a pool may have let one go
    assert after == before
    assert resident_bytes() - memory < 8 * MIB
    assert _dead_children() == 0


def resident_bytes(pid: int | str = "self") -> int:
    """Memory that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _dead_children() -> int:
    try:
        return int(os.waitpid(-1, os.WNOHANG)[0] != 0)
    except ChildProcessError:
        return 0


def _served(lives: int, warm_up: int) -> None:
    """The server is in this process, so that what it keeps is seen as well as what its client keeps."""
    with running(Settings(port=0)) as address:
        try:
            # The lease is given back: how many connections were open at once is no leak.
            soak(lives, f"remote:{address}", warm_up=warm_up, at_once=4, rest=connection.disconnect)
        finally:
            connection.disconnect()


def test_50_lives_leave_nothing() -> None:
    soak(50)


def test_20_lives_at_a_server_leave_nothing() -> None:
    _served(20, warm_up=10)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_10_000_lives_leave_nothing() -> None:
    soak(10_000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_1_000_lives_at_a_server_leave_nothing() -> None:
    _served(1_000, warm_up=30)

"""Many lives leave nothing in this process nor at the engine: 10 in the lane, 300 as a slow test."""

from __future__ import annotations

import pytest

from sandbox.types import MIB
from tests.sandbox.docker import engine
from tests.sandbox.docker.remains import new, steady
from tests.sandbox.test_soak import live, resident_bytes, soak

pytestmark = pytest.mark.docker


def _soak(lives: int, address: str, warm_up: int) -> None:
    live(f"docker:{address}")
    before = steady(address)
    soak(lives, f"docker:{address}", warm_up=warm_up)
    assert new(address, before) == []
    pid = int((engine.home(address) / "pid").read_text())
    print(f"the engine holds {resident_bytes(pid) / MIB:.1f} MiB")


def test_10_lives_leave_nothing(address: str) -> None:
    _soak(10, address, warm_up=3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_300_lives_leave_nothing(address: str) -> None:
    _soak(300, address, warm_up=10)

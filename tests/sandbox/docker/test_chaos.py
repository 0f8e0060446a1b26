"""A harness with containers, killed with SIGKILL at random points: nothing is left, and a live one's is untouched.

Afterwards `agent-rl runs clean` does it for even seeds, a further start at the same engine for odd ones. The engine's
address stands in no environment: the ledger of the dead owner names it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

import pytest

from sandbox import reaper
from tests.sandbox.docker.remains import new, remains, steady
from tests.sandbox.test_chaos import PYTHON, first_seed, killed, run, traces, working

pytestmark = pytest.mark.docker
NEXT = "import sys, sandbox; sandbox.create(backend=sys.argv[1]).close()"


def _clean(seed: int, backend: str) -> None:
    if seed % 2:
        done = run([*PYTHON, NEXT, backend])
        assert done.returncode == 0, f"seed {seed}: {done.stderr}"
        return
    done = run([sys.executable, "-B", "-m", "agent_rl.cli", "runs", "clean", "--json"])
    assert done.returncode == 0, f"seed {seed}: {done.stdout} {done.stderr}"
    removed = [name for name in json.loads(done.stdout)["removed"] if name.startswith("container")]
    print(f"seed {seed}: {len(removed)} containers removed, others went by themselves")


def _grow_old(entry: str) -> None:
    """As when two minutes passed since the owner's last word to an engine."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(entry, (time.time() - 200, time.time() - 200))


def _chaos(kills: int, address: str) -> None:
    backend, first = f"docker:{address}", first_seed()
    with working(backend) as bystander:
        bystander()
        before = steady(address)
        assert len(before["containers"]) == 1
        for seed in range(first, first + kills):
            owner, marker = killed(seed, backend=backend, within_s=8.0)
            assert owner, "the harness died by itself"
            seen = len(remains(address)["containers"]) - 1
            started = time.monotonic()
            _clean(seed, backend)
            if left := new(address, before):  # made after that, or the ledger was another process's to clean
                print(f"seed {seed}: {left} after the first time")
                _clean(seed | 1, backend)
                assert new(address, before) == [], f"seed {seed}"
            print(
                f"seed {seed}: {seen} containers at its death, none after {time.monotonic() - started:.1f} s"
            )
            entry = f"/run/agent-rl/owners/{owner}"  # kept while the engine may still be making what it was asked for
            assert {*traces(owner, marker)} <= {entry}, f"seed {seed}"
            _grow_old(entry)
            _clean(0, backend)
            assert traces(owner, marker) == [], f"seed {seed}"
            assert not [thing for thing in reaper.audit() if owner in thing or "container" in thing]
            bystander()


@pytest.mark.timeout(300)
def test_killed_2_times(address: str) -> None:
    _chaos(2, address)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_10_times(address: str) -> None:
    _chaos(10, address)

"""A harness killed with SIGKILL at random points leaves nothing once the reaper ran; a live one is untouched.

What is left is looked for here from outside, by the owner's name, not by the reaper's own audit alone. Each run
prints its seed; `AGENT_RL_CHAOS_SEED=N` begins with that one.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sandbox
from sandbox import SandboxSpec, ledger
from tests.sandbox.conftest import SMALL

ROOT = Path(sandbox.__file__).parent.parent
LOAD = """
import contextlib, random, sys, threading
import sandbox
from sandbox.machine import machine
seed, marker, backend = int(sys.argv[1]), sys.argv[2], sys.argv[3]
limits = sandbox.Limits(memory_bytes=96 << 20, processes=24, workspace_bytes=4 << 20, timeout_s=20)
print(machine().ledger.owner, flush=True)

def live(number):
    rng = random.Random(seed * 100 + number)
    with contextlib.suppress(sandbox.SandboxError):
        while True:
            box = sandbox.create(sandbox.SandboxSpec(limits=limits, files={"f": b"x" * 5000}), backend)
            for _ in range(rng.randrange(4)):
                what = rng.randrange(5)
                if what == 0:
                    box.exec(["/bin/sleep", marker], timeout_s=rng.random() / 5)
                elif what == 1:
                    box.exec(["/bin/bash", "-c", f"trap '' TERM; setsid sleep {marker} & : > g"])
                elif what == 2:
                    shell = box.shell()
                    shell.run(f"sleep {marker} & sleep {marker} & mkdir -p a/b/c")
                    if rng.random() < 0.5:
                        shell.close()
                elif what == 3:
                    with contextlib.suppress(sandbox.SandboxBusy), box.fork() as child:
                        child.exec(["/bin/bash", "-c", f"echo y > h; sleep {marker} & exit"])
                else:
                    box.write("d/e", b"z" * 5000)
            box.close()

for number in range(4):
    threading.Thread(target=live, args=(number,)).start()
"""
PYTHON = [sys.executable, "-B", "-c"]
OPTIONS: dict[str, Any] = {"cwd": ROOT, "env": {"PATH": "/usr/bin:/bin"}}
REAP = "from sandbox import reaper; reaper.clean(); print(*reaper.audit(), sep='\\n')"


@pytest.fixture
def bystander() -> Iterator[Callable[[], None]]:
    with working("bubblewrap") as check:
        yield check


@contextlib.contextmanager
def working(backend: str) -> Iterator[Callable[[], None]]:
    """A sandbox of this process that works throughout; calling it proves so."""
    with sandbox.create(SandboxSpec(limits=SMALL, files={"mine": b"1"}), backend) as box:
        shell = box.shell()
        first = shell.run("x=live; sleep 1000 & echo $!").stdout.text.strip()
        ended, errors = threading.Event(), list[str]()

        def check() -> None:
            assert shell.run(f"echo $x; kill -0 {first}").stdout.text == "live\n"
            assert box.exec(["/bin/cat", "mine"]).stdout.text == "1"

        def work() -> None:
            try:
                while not ended.wait(0.2):
                    check()
            except (AssertionError, sandbox.SandboxError) as error:
                errors.append(repr(error))

        worker = threading.Thread(target=work)
        worker.start()
        try:
            yield check
        finally:
            ended.set()
            worker.join()
        assert errors == []


def traces(owner: str, marker: str) -> list[str]:
    """What is seen of an owner on the machine, whoever it belongs to."""
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if owner in line]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            if (owner in words or marker in words) and process.name != str(os.getpid()):
                found.append(f"{process.name} {words!r}")
            elif owner in (process / "cgroup").read_text():
                found.append(f"{process.name} in the group")
    found += [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if owner in folder]
    found += [str(path) for path in Path(tempfile.gettempdir()).glob(f"*{owner}*")]
    places = ("/run/agent-rl/owners", *(str(path) for path in Path("/tmp").glob(f"{ledger.PREFIX}owners-*")))
    return found + [f"{place}/{owner}" for place in places if os.path.exists(f"{place}/{owner}")]


def chaos(seed: int, user: tuple[str, ...] = (), backend: str = "bubblewrap", within_s: float = 1.5) -> None:
    owner, marker = killed(seed, user=user, backend=backend, within_s=within_s)
    if not owner and user:
        pytest.skip("another user cannot read the interpreter or this checkout")
    assert owner, "the harness died by itself"
    done = run([*user, *PYTHON, REAP])
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    assert owner not in done.stdout, f"seed {seed}"
    assert traces(owner, marker) == [], f"seed {seed}"


def killed(
    seed: int, *, user: tuple[str, ...] = (), backend: str = "bubblewrap", within_s: float = 1.5
) -> tuple[str, str]:
    """Load a backend and kill the harness at a random moment: its owner's name, and what its sleepers sleep."""
    rng, marker = random.Random(seed), f"1{secrets.randbelow(10**9):09}.5"
    command = [*user, *PYTHON, LOAD, str(seed), marker, backend]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **OPTIONS) as process:
        assert process.stdout is not None
        owner = process.stdout.readline().decode().strip()
        time.sleep(rng.random() ** 2 * within_s)
        process.kill()
    return owner, marker


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **OPTIONS)


def first_seed() -> int:
    """Of a run; printed, so that it can be had again."""
    seed = int(os.environ.get("AGENT_RL_CHAOS_SEED") or secrets.randbelow(10**6))
    print(f"chaos begins with seed {seed}")
    return seed


def _user(kind: str) -> tuple[str, ...]:
    if kind == "this user":
        return ()
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root; this user is an ordinary one already")
    return ("/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")


@pytest.mark.parametrize("kind", ["this user", "an ordinary user"])
def test_killed_3_times(bystander: Callable[[], None], kind: str) -> None:
    first = first_seed()
    for seed in range(first, first + 3):
        chaos(seed, _user(kind))
        bystander()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["this user", "an ordinary user"])
def test_killed_40_times(bystander: Callable[[], None], kind: str) -> None:
    first = first_seed()
    for seed in range(first, first + 40):
        chaos(seed, _user(kind))
        bystander()

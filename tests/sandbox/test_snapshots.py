"""Snapshots a hundred deep: right, bounded, and without copying what is big and old."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import time
from pathlib import Path

import pytest

import sandbox
from sandbox import Limits, Sandbox, SandboxPathError, SandboxSpec
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.family import Snapshot
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL, needs

NAMES = [f"{folder}{name}" for folder in ("", "d/", "d/e/", "x/") for name in "abc"]
SHOW = "find . -mindepth 1 \\( -type f -printf '%P %s\\n' -o -type d -printf '%P/\\n' \\) | sort"


def show(box: Sandbox) -> str:
    result = box.exec(["/bin/bash", "-c", SHOW])
    assert result.ok, result.stderr.text
    return result.stdout.text


def change(box: Sandbox, rng: random.Random) -> None:
    """One change, by the host or by a program: files come, change and go, folders are replaced by files and back."""
    name, size = rng.choice(NAMES), rng.randrange(3000)
    what = rng.randrange(6)
    if what < 2:
        with contextlib.suppress(SandboxPathError):  # a file stands where a folder is wanted
            box.write(name, b"h" * size)
        return
    command = [
        f"mkdir -p $(dirname {name}) && head -c {size} /dev/zero > {name}",
        f"rm -rf {name}",
        "rm -rf d && mkdir -p d/e && echo new > d/e/a",
        f"rm -rf {rng.choice(['d', 'x'])}; echo file > {rng.choice(['d', 'x'])}",
    ][what - 2]
    box.exec(["/bin/bash", "-c", command + "; true"])


@pytest.mark.parametrize("big", [0, 3 * MIB // 2])
def test_100_snapshots_each_come_back_as_they_were(big: int) -> None:
    seed = secrets.randbelow(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    with sandbox.create(SandboxSpec(limits=SMALL, files={"big": b"b" * big, "d/a": b"1"})) as box:
        assert isinstance(box, BubblewrapSandbox)
        snapshots: list[tuple[Snapshot, str]] = []
        for number in range(100):
            change(box, rng)
            seen = show(box) if number % 10 == 9 else ""
            snapshots.append((box.snapshot(), seen))
            if number % 10 == 9:
                assert show(box) == seen
            assert box._stack is not None
            assert len(box._stack.frozen) <= box.machine.max_layers + 1
        for snapshot, seen in rng.sample(snapshots, 100):
            if seen:
                box.restore(snapshot)
                assert show(box) == seen
                assert len(box.read("big", max_bytes=1 << 22)) == big
            snapshot.release()
            assert snapshot.held_bytes == 0


def test_a_big_old_layer_is_not_copied_by_small_changes() -> None:
    needs("workspace_size", "overlay")
    limits = Limits(workspace_bytes=64 * MIB)
    with sandbox.create(SandboxSpec(limits=limits, files={"big": b"b" * (20 * MIB)})) as box:
        snapshots = []
        for number in range(60):
            box.write("small", b"x" * number)
            snapshots.append(box.snapshot())
        held = sum(snapshot.held_bytes for snapshot in snapshots)
        assert held < 30 * MIB
        for snapshot in snapshots:
            snapshot.release()


def test_what_is_held_adds_up(box: Sandbox) -> None:
    box.write("f", b"x" * MIB)
    first = box.snapshot()
    alone = first.held_bytes
    assert 0.4 * MIB < alone < 1.2 * MIB  # the sandbox holds the other half
    second = box.snapshot()
    assert first.held_bytes + second.held_bytes < 1.2 * MIB
    second.release()
    assert first.held_bytes == alone
    first.release()


def test_a_shell_over_snapshots_and_the_host_see_each_other(box: Sandbox) -> None:
    box.write("d/old", b"old")
    box.write("gone", b"1")
    box.snapshot().release()
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("cat d/old gone").stdout.text == "old1"
        box.write("d/old", b"by the host")
        box.write("d/new", b"new")
        assert shell.run("cat d/old d/new; ls d").stdout.text == "by the hostnewnew\nold\n"
        assert shell.run("rm gone; echo -n by the shell > d/old; mkdir -p p/q; echo 1 > p/q/r").ok
        assert box.read("d/old") == b"by the shell"
        assert box.read("p/q/r") == b"1\n"
        with pytest.raises(SandboxPathError):
            box.read("gone")
        assert box.exec(["/bin/cat", "d/old"]).stdout.text == "by the shell"
        assert box.exec(["/bin/rm", "-r", "p"]).ok
        assert shell.run("ls").stdout.text == "d\n"
    taken = box.snapshot()
    box.write("d/old", b"after")
    box.restore(taken)
    taken.release()
    assert box.exec(["/bin/bash", "-c", "cat d/*; ls"]).stdout.text == "newby the shelld\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_fork_of_a_gigabyte_in_10_000_files_copies_nothing() -> None:
    needs("workspace_size", "overlay")
    if _available_bytes() < 4 << 30:
        pytest.skip("less than 4 GiB of memory are available")
    limits = Limits(workspace_bytes=2 << 30, memory_bytes=2 << 30, file_bytes=2 << 30, timeout_s=120)
    fill = "for i in $(seq 100); do mkdir d$i; done; head -c 104858 /dev/zero > /tmp/p; "
    fill += "for i in $(seq 10000); do cat /tmp/p > d$((i % 100 + 1))/f$i; done"
    with sandbox.create(SandboxSpec(limits=limits)) as box:
        assert box.exec(["/bin/bash", "-c", fill]).ok
        before, times = _available_bytes(), []
        with contextlib.ExitStack() as stack:
            for number in range(100):
                started = time.monotonic()
                child = stack.enter_context(box.fork())
                times.append(time.monotonic() - started)
                child.write(f"d1/new{number}", b"x")
                box.write(f"d2/new{number}", b"y")
            taken = before - _available_bytes()
            assert child.exec(["/bin/bash", "-c", "ls d*/* | wc -l"]).stdout.text == "10100\n"
        print(f"100 forks: first {times[0]:.4f} s, slowest {max(times):.4f} s, {taken / MIB:.0f} MiB taken")
        assert taken < 256 * MIB


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

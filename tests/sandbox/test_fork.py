"""Snapshots of bubblewrap beyond the contract: by copy where overlays do not work, and what they cost."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec, conformance
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.conformance import Subject
from sandbox.machine import machine
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL, needs


@contextlib.contextmanager
def overlays(wanted: bool) -> Iterator[None]:
    ground = machine()
    before = ground.overlay
    ground.overlay = before and wanted
    try:
        yield
    finally:
        ground.overlay = before


@pytest.mark.parametrize("name", [name for name in conformance.CASES if name.startswith("snapshots-")])
def test_by_copy(subject: Subject, name: str) -> None:
    with overlays(False):
        conformance.CASES[name](subject)


@pytest.fixture(params=["overlay", "copy"])
def base(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    spec = SandboxSpec(limits=SMALL, files={"keep": b"k", "d/one": b"1", "d/two": b"2"})
    with overlays(request.param == "overlay"), sandbox.create(spec) as made:
        yield made


def test_modes_times_links_and_holes_survive_flattening(base: Sandbox) -> None:
    script = """
    chmod 751 d; chmod 4640 keep; touch -d @1000 d/two; ln -s nowhere link; mkfifo pipe; ln keep d/again
    truncate -s 3M d/hole; echo end >> d/hole; touch -d @2000 d
    """
    assert base.exec(["/bin/bash", "-c", script]).ok
    show = ["/usr/bin/find", ".", "-mindepth", "1", "-printf", "%P %y %m %s %T@ %l %u %n\\n"]
    with base.fork() as child:
        before = sorted(
            line for line in child.exec(show).stdout.text.splitlines() if not line.startswith("d d")
        )
        with contextlib.closing(child.shell()):  # opening a shell flattens
            after = sorted(
                line for line in child.exec(show).stdout.text.splitlines() if not line.startswith("d d")
            )
            folder = child.exec(["/usr/bin/stat", "-c", "%a %Y", "d"]).stdout.text
        assert after == before
        assert folder == "751 2000\n"
        assert len(child.read("d/hole", max_bytes=4 << 20)) == 3 * 2**20 + 4
        used = child.exec(["/usr/bin/du", "-sk", "d/hole"]).stdout.text.split()[0]
        assert int(used) <= 8


def test_repeated_snapshots_without_changes_cost_no_layer(base: Sandbox) -> None:
    assert isinstance(base, BubblewrapSandbox)
    first = base.snapshot()
    folder = f"/proc/self/fd/{base.machine.base_fd}"
    count = len(os.listdir(folder))
    more = [base.snapshot() for _ in range(20)]
    if base.machine.overlay:
        assert len(os.listdir(folder)) == count
    for snapshot in (first, *more):
        snapshot.release()


def test_workspace_of_a_fork_counts_what_the_parent_wrote() -> None:
    needs("workspace_size", "overlay")
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        box.write("a", bytes(1 * MIB))
        with box.fork() as child:
            result = child.exec(["/bin/dd", "if=/dev/zero", "of=b", "bs=1M", "count=8"])
            assert (result.exit_code, result.reason) == (1, "disk")
            assert "No space left" in result.stderr.text
            assert len(child.read("b", max_bytes=4 * MIB)) <= 3 * MIB


def test_snapshots_of_a_full_workspace_do_not_add_up() -> None:
    needs("workspace_size", "overlay")
    fill = "for i in $(seq 3000); do : > $0$i || break; done 2>/dev/null; dd if=/dev/zero of=$0 bs=4k 2>/dev/null; :"
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        assert isinstance(box, BubblewrapSandbox)
        for turn in range(8):
            box.exec(["/bin/bash", "-c", fill, f"f{turn}"])
            box.snapshot().release()
        with contextlib.closing(box.shell()) as shell:
            used = int(shell.run("du -sk . | cut -f1").stdout.text)
            files = int(shell.run("find . | wc -l").stdout.text)
        assert used <= SMALL.workspace_bytes // 1024 + 8 * 16
        assert files <= 2 * (1024 + SMALL.workspace_bytes // 4096) + 8 * 64

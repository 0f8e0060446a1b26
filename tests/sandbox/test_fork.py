"""Snapshots and forks, checked against plain dictionaries and from inside the sandbox."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

import sandbox
from sandbox import Sandbox, SandboxBusy, SandboxError, SandboxPathError, SandboxSpec
from sandbox.bubblewrap import BubblewrapSandbox
from tests.sandbox.conftest import SMALL

LIST = """
find . -type f -printf '%P %s\n' | sort
find . -mindepth 1 -type d -printf '%P/\n' | sort
find . -type l -printf '%P -> %l\n'
"""


def listing(box: Sandbox) -> str:
    result = box.exec(["/bin/bash", "-c", LIST])
    assert result.ok, result.stderr.text
    return result.stdout.text


@pytest.fixture(params=["overlay", "copy"])
def base(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Forks by overlay, and by copy as on a machine whose kernel has no overlays for sandboxes."""
    spec = SandboxSpec(limits=SMALL, files={"keep": b"k", "d/one": b"1", "d/two": b"2"})
    with sandbox.create(spec) as made:
        assert isinstance(made, BubblewrapSandbox)
        before = made.machine.overlay
        made.machine.overlay = before and request.param == "overlay"
        try:
            yield made
        finally:
            made.machine.overlay = before


def test_neither_side_sees_what_the_other_writes(base: Sandbox) -> None:
    with base.fork() as child:
        assert child.exec(["/bin/bash", "-c", "rm d/one; echo changed > keep; mkdir n; echo x > n/f"]).ok
        assert base.exec(["/bin/bash", "-c", "rm -r d; echo parent > new"]).ok
        assert listing(child) == "d/two 1\nkeep 8\nn/f 2\nd/\nn/\n"
        assert listing(base) == "keep 1\nnew 7\n"
        assert child.read("keep") == b"changed\n"
        with pytest.raises(SandboxPathError):
            child.read("d/one")
        with pytest.raises(SandboxPathError):
            base.read("d/two")


def test_a_fork_outlives_its_parent() -> None:
    parent = sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"parent's"}))
    child = parent.fork()
    parent.close()
    with child, child.fork() as grandchild:
        assert grandchild.exec(["/bin/cat", "f"]).stdout.text == "parent's"


def test_host_writes_over_deleted_folders(base: Sandbox) -> None:
    with base.fork() as child:
        child.exec(["/bin/rm", "-r", "d"])
        child.write("d/three", b"333")
        assert listing(child) == "d/three 3\nkeep 1\nd/\n"
        with pytest.raises(SandboxPathError):
            child.read("d/one")
        child.exec(["/bin/bash", "-c", "rm keep; mkdir keep; echo in > keep/inner"])
        assert child.read("keep/inner") == b"in\n"
        with child.fork() as grandchild:
            grandchild.write("d/four", b"4444")
            grandchild.write("keep/more", b"m")
            assert listing(grandchild) == "d/four 4\nd/three 3\nkeep/inner 3\nkeep/more 1\nd/\nkeep/\n"
    assert listing(base) == "d/one 1\nd/two 1\nkeep 1\nd/\n"


def test_program_replaces_folder_by_file_and_by_link(base: Sandbox) -> None:
    with base.fork() as child:
        assert child.exec(["/bin/bash", "-c", "rm -r d; echo file > d; ln -sf /etc/passwd keep"]).ok
        assert child.read("d") == b"file\n"
        for path in ("keep", "d/one"):
            with pytest.raises(SandboxPathError):
                child.read(path)
        with pytest.raises(SandboxPathError):
            child.write("d/one", b"")


def test_restore_and_release(base: Sandbox) -> None:
    first = base.snapshot()
    base.exec(["/bin/bash", "-c", "rm -r d; echo changed > keep"])
    second = base.snapshot()
    base.restore(first)
    assert listing(base) == "d/one 1\nd/two 1\nkeep 1\nd/\n"
    with base.fork() as relative:
        relative.restore(second)
        assert listing(relative) == "keep 8\n"
    base.write("more", b"")
    base.restore(first)
    base.restore(second)
    assert listing(base) == "keep 8\n"
    for snapshot in (first, second, first):
        snapshot.release()
    with pytest.raises(SandboxError, match="released"):
        base.restore(first)


def test_a_snapshot_of_a_stranger_is_refused(base: Sandbox) -> None:
    with sandbox.create(SandboxSpec(limits=SMALL)) as stranger:
        snapshot = stranger.snapshot()
        with pytest.raises(SandboxError, match="relative"):
            base.restore(snapshot)
        snapshot.release()


def test_refused_while_a_shell_is_open(base: Sandbox) -> None:
    snapshot = base.snapshot()
    with contextlib.closing(base.shell()) as shell:
        assert shell.run("cat d/one").stdout.text == "1"
        for refused in (base.snapshot, base.fork, lambda: base.restore(snapshot)):
            with pytest.raises(SandboxBusy, match="1 shells"):
                refused()
    base.restore(snapshot)
    snapshot.release()


def test_deep_chains_are_flattened_and_stay_right(base: Sandbox) -> None:
    expected = {"keep": b"k", "d/one": b"1", "d/two": b"2"}
    with contextlib.ExitStack() as stack:
        box = base
        for depth in range(30):
            box = stack.enter_context(box.fork())
            name, data = f"d/f{depth % 7}", str(depth).encode()
            if depth % 3 == 2:
                if name in expected:
                    box.exec(["/bin/rm", name])
                    del expected[name]
            else:
                box.write(name, data)
                expected[name] = data
        assert {name: box.read(name) for name in expected} == expected
        lines = [f"{name} {len(data)}" for name, data in sorted(expected.items())]
        assert listing(box).splitlines() == [*lines, "d/"]
    assert listing(base) == "d/one 1\nd/two 1\nkeep 1\nd/\n"


def test_modes_times_links_and_holes_survive_flattening(base: Sandbox) -> None:
    script = """
    chmod 751 d; chmod 4640 keep; touch -d @1000 d/two; ln -s nowhere link; mkfifo pipe
    truncate -s 3M d/hole; echo end >> d/hole; touch -d @2000 d
    """
    assert base.exec(["/bin/bash", "-c", script]).ok
    show = ["/usr/bin/find", ".", "-mindepth", "1", "-printf", "%P %y %m %s %T@ %l %u\\n"]
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

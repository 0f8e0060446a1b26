"""The parts that need no running sandbox: captures, user ids, groups, names of processes, exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import identity
from sandbox.capture import HeadTail
from sandbox.cgroups import Cgroup, Cgroups
from sandbox.conclude import exit_code
from sandbox.ledger import Ledger
from sandbox.uids import Uids


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 50))
def test_head_and_tail_are_those_of_the_whole(chunks: list[bytes], limit: int) -> None:
    capture, whole = HeadTail(limit), b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    output = capture.output()
    assert output.total_bytes == len(whole)
    if len(whole) <= limit:
        assert output.head + output.tail == whole
    else:
        assert output.head == whole[: limit - limit // 2]
        assert output.tail == whole[len(whole) - limit // 2 :]
    assert output.truncated_bytes == max(0, len(whole) - limit)


def test_long_streams_are_held_in_bounded_memory() -> None:
    capture = HeadTail(100)
    for _ in range(1000):
        capture.add(b"x" * 10_000)
    capture.add(b"end")
    assert capture.output().tail.endswith(b"xend")
    assert capture.output().total_bytes == 10_000_003


@pytest.mark.parametrize(
    ("shown", "code"),
    [(0, 0), (1, 1), (127, 127), (128, 128), (137, -9), (139, -11), (192, -64), (200, 200), (255, 255)],
)
def test_exit_codes(shown: int, code: int) -> None:
    assert exit_code(shown) == code


def test_names_of_processes() -> None:
    assert identity.own_name() == f"{os.getpid()}-{identity.start_ticks(os.getpid())}"
    assert identity.start_ticks(999_999_999) is None


def test_user_ids_differ_within_and_between_processes(tmp_path: Path) -> None:
    ids = Uids(tmp_path / "ids")
    claimed = {ids.claim() for _ in range(50)}
    assert len(claimed) == 50
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        other = Uids(tmp_path / "ids")
        other._next = min(claimed) - other.first - 1
        os.write(write, str(other.claim()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    assert int(os.read(read, 100)) not in claimed
    os.close(read)
    for uid in claimed:
        ids.release(uid)
    ids.close()


def test_groups_of_version_2_are_driven_by_their_files(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "pids.max", "memory.peak"):
        (tmp_path / name).write_text("")
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (tmp_path / "pids.events").write_text("max 5\n")
    (tmp_path / "cgroup.procs").write_text("7\n8\n")
    group = Cgroup(tmp_path, tmp_path, version=2)
    group.set_limits(memory_bytes=1000, processes=9)
    assert (tmp_path / "memory.max").read_text() == "1000"
    assert (tmp_path / "memory.swap.max").read_text() == "0"
    assert (tmp_path / "pids.max").read_text() == "9"
    assert (group.oom_kills(), group.pids_refusals(), group.members()) == (2, 5, [7, 8])
    assert group.procs_files == [str(tmp_path / "cgroup.procs")]
    (tmp_path / "memory.peak").write_text("4096\n")
    assert group.peak_bytes() == 4096


def test_groups_on_this_machine(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    ledger = Ledger(tmp_path)
    groups = Cgroups(ledger)
    if not groups.usable:
        pytest.skip(f"no group can be written: {groups.missing}")
    group = groups.make("test")
    try:
        assert all(os.path.exists(path) for path in group.procs_files)
        assert (group.oom_kills(), group.pids_refusals(), group.members()) == (0, 0, [])
    finally:
        group.remove()
    assert not any(os.path.exists(path) for path in group.procs_files)
    groups.close()
    ledger.close()

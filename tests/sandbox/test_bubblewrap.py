"""What is bubblewrap's own; what every backend promises stands in `sandbox.conformance`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL, needs, python

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    result = libc.syscall(*numbers)
    return (result, os.strerror(ctypes.get_errno()) if result < 0 else "ok")
"""
ARCH = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


@pytest.fixture
def base() -> Iterator[BubblewrapSandbox]:
    spec = SandboxSpec(limits=SMALL, files={"keep": b"k", "d/one": b"1", "d/two": b"2"})
    with sandbox.create(spec) as made:
        assert isinstance(made, BubblewrapSandbox)
        yield made


def test_command_line_of_init_shows_no_host_path_and_no_variable() -> None:
    spec = SandboxSpec(limits=SMALL, env={"TOKEN": "pass-phrase"})
    with sandbox.create(spec) as box:
        text = box.exec(["/bin/cat", "/proc/1/cmdline"]).stdout.text
        environ = box.exec(["/bin/cat", "/proc/1/environ"])
    words = text.rstrip("\0").split("\0")
    assert words[:2] == ["./bwrap", "--args"]
    assert words[3:] == ["--", "/bin/cat", "/proc/1/cmdline"]
    assert "pass-phrase" not in environ.stdout.text


def test_only_these_folders_of_the_host_are_there(box: Sandbox) -> None:
    listed = set(box.exec(["/bin/ls", "/"]).stdout.text.split())
    system = {"bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr"}
    assert listed <= system | {"dev", "etc", "proc", "tmp", "workspace"}
    etc = {"alternatives", "group", "hosts", "ld.so.cache", "mime.types", "nsswitch.conf", "passwd"}
    assert set(box.exec(["/bin/ls", "/etc"]).stdout.text.split()) <= etc


def test_new_namespaces_are_refused_by_the_filter(box: Sandbox) -> None:
    clone3, unshare, clone = ((435, 435)[ARCH], (272, 97)[ARCH], (56, 220)[ARCH])
    code = f"print(call({clone3}, 0, 0), call({unshare}, 0x10000000), call({clone}, 0x10000000 | 17, 0, 0, 0, 0))"
    refused = "(-1, 'Operation not permitted')"
    assert python(box, CALL + code).stdout.text == f"(-1, 'Function not implemented') {refused} {refused}\n"


def test_address_space_is_bounded_without_a_memory_group(box: Sandbox) -> None:
    bounded = "memory_total" in box.capabilities.enforced
    expected = "unlimited" if bounded else str(SMALL.memory_bytes)
    assert box.posture()["limits"]["Max address space"] == expected


def test_posture_leaves_no_program_behind(box: Sandbox) -> None:
    before = os.listdir("/proc/self/fd")
    assert box.posture()["init_command"].split("\0")[:2] == ["./bwrap", "--args"]
    assert os.listdir("/proc/self/fd") == before


def test_workspace_of_a_fork_counts_what_the_parent_wrote() -> None:
    needs("workspace_size", "overlay")
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        box.write("a", bytes(1 * MIB))
        with box.fork() as child:
            result = child.exec(["/bin/dd", "if=/dev/zero", "of=b", "bs=1M", "count=8"])
            assert result.exit_code == 1
            assert "No space left" in result.stderr.text
            assert len(child.read("b", max_bytes=4 * MIB)) <= 3 * MIB


def test_modes_times_links_and_holes_survive_flattening(base: BubblewrapSandbox) -> None:
    script = """
    chmod 751 d; chmod 4640 keep; touch -d @1000 d/two; ln -s nowhere link; mkfifo pipe
    truncate -s 3M d/hole; echo end >> d/hole; touch -d @2000 d
    """
    assert base.exec(["/bin/bash", "-c", script]).ok
    show = [
        "/usr/bin/find",
        ".",
        "-mindepth",
        "1",
        "-not",
        "-name",
        "d",
        "-printf",
        "%P %y %m %s %T@ %l %u\\n",
    ]
    with base.fork() as child:
        before = sorted(child.exec(show).stdout.text.splitlines())
        with closing(child.shell()):  # opening a shell flattens
            after = sorted(child.exec(show).stdout.text.splitlines())
            folder = child.exec(["/usr/bin/stat", "-c", "%a %Y", "d"]).stdout.text
        assert after == before
        assert folder == "751 2000\n"
        assert len(child.read("d/hole", max_bytes=4 << 20)) == 3 * 2**20 + 4
        used = child.exec(["/usr/bin/du", "-sk", "d/hole"]).stdout.text.split()[0]
        assert int(used) <= 8


def test_repeated_snapshots_without_changes_cost_no_layer(base: BubblewrapSandbox) -> None:
    first = base.snapshot()
    folder = f"/proc/self/fd/{base.machine.base_fd}"
    count = len(os.listdir(folder))
    more = [base.snapshot() for _ in range(20)]
    if base.machine.overlay:
        assert len(os.listdir(folder)) == count
    for snapshot in (first, *more):
        snapshot.release()

"""Large workspaces lie on disk: bounded, not charged to memory, shared by forks, gone with the harness."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import sandbox
from sandbox import SandboxSpec
from sandbox.layers import LARGE_BYTES
from tests.sandbox.conftest import SMALL, needs

pytestmark = [
    pytest.mark.skipif(not shutil.which("mkfs.ext4", path="/usr/sbin:/sbin"), reason="e2fsprogs is missing"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here"),
]
LARGE = SandboxSpec(limits=replace(SMALL, workspace_bytes=LARGE_BYTES, file_bytes=1 << 30))


def loops() -> int:
    return sum(
        1 for path in Path("/sys/block").glob("loop*/loop/backing_file") if "/var/tmp" in path.read_text()
    )


def test_more_than_the_memory_limit_fits_and_the_size_is_bounded() -> None:
    needs("workspace_size", "memory_total")
    with sandbox.create(LARGE) as box:
        before = loops()
        assert before >= 1
        wrote = box.exec(["/bin/sh", "-c", "head -c 120000000 /dev/zero >big && stat -c %s big"])
        assert (wrote.stdout.text, wrote.reason) == ("120000000\n", "ok")
        with box.fork() as child:
            child.exec(["/bin/rm", "big"])
            full = child.exec(["/bin/sh", "-c", "head -c 400000000 /dev/zero >more"])
            assert b"No space left" in full.stderr.head
            assert loops() == before + 2  # parent and child write into new layers
        assert box.exec(["/usr/bin/stat", "-c", "%s", "big"]).stdout.text == "120000000\n"
    assert loops() < before


def test_a_killed_harness_leaves_no_device() -> None:
    needs("workspace_size")
    before = loops()
    code = "import sandbox, tests.sandbox.test_disks as t, time\nb = sandbox.create(t.LARGE)\nprint('up', flush=True)\n"
    code += "time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"up\n"
        assert loops() > before
        os.kill(harness.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while loops() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert loops() == before

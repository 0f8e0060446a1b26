"""What the kernel says about a program in a sandbox, looked at from outside."""

from __future__ import annotations

import os

from sandbox import Sandbox
from tests.sandbox.conftest import SMALL, needs


def test_posture_of_a_running_program(box: Sandbox) -> None:
    posture = box.posture()
    for kind in ("effective", "permitted", "bounding", "ambient"):
        assert posture[f"{kind}_capabilities"] == 0
    assert posture["no_new_privileges"] is True
    assert posture["groups"] == []
    assert all(posture["private_namespaces"].values())
    assert set(posture["private_namespaces"]) == {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}
    assert posture["descriptors"] == [0, 1, 2]
    assert posture["oom_score_adj"] == 1000
    assert set(posture["writable_mounts"]) - {"/proc"} <= {
        "/tmp", "/workspace", "/dev/shm", "/dev/pts", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
        "/dev/urandom", "/dev/tty", "/dev/console",
    }  # fmt: skip
    limits = posture["limits"]
    assert limits["Max core file size"] == "0"
    assert limits["Max open files"] == str(SMALL.open_files)
    assert limits["Max file size"] == str(SMALL.file_bytes)
    assert posture["init_command"].split("\0")[:2] == ["./bwrap", "--args"]


def test_posture_seccomp(box: Sandbox) -> None:
    needs("seccomp")
    assert box.posture()["seccomp"] == 2


def test_posture_host_user(box: Sandbox) -> None:
    needs("separate_uid")
    posture = box.posture()
    assert posture["uid"] not in (0, os.getuid())
    assert posture["gid"] not in (0, os.getgid())


def test_posture_groups(box: Sandbox) -> None:
    needs("memory_total", "processes")
    lines = [line for line in box.posture()["cgroups"] if "agent-rl-" in line]
    assert lines
    assert all(f"agent-rl-{os.getpid()}-" in line for line in lines)


def test_posture_address_space_without_a_memory_group(box: Sandbox) -> None:
    bounded = "memory_total" in box.capabilities.enforced
    expected = "unlimited" if bounded else str(SMALL.memory_bytes)
    assert box.posture()["limits"]["Max address space"] == expected


def test_posture_leaves_no_program_behind(box: Sandbox) -> None:
    before = os.listdir("/proc/self/fd")
    box.posture()
    assert os.listdir("/proc/self/fd") == before

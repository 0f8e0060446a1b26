"""What bubblewrap shows of the host and of itself; what a program may do, `sandbox.conformance` measures."""

from __future__ import annotations

import os

import sandbox
from sandbox import Sandbox, SandboxSpec
from tests.sandbox.conftest import SMALL, needs


def test_posture_of_a_running_program(box: Sandbox) -> None:
    posture = box.posture()
    assert posture["groups"] == []
    assert all(posture["private_namespaces"].values())
    assert set(posture["private_namespaces"]) == {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}
    assert posture["descriptors"] == [0, 1, 2]
    assert set(posture["writable_mounts"]) - {"/proc"} <= {
        "/tmp", "/workspace", "/dev/shm", "/dev/pts", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
        "/dev/urandom", "/dev/tty", "/dev/console",
    }  # fmt: skip
    assert posture["init_command"].split("\0")[:2] == ["./bwrap", "--args"]


def test_posture_groups_are_this_processes_own(box: Sandbox) -> None:
    needs("memory_total", "processes")
    lines = [line for line in box.posture()["cgroups"] if "agent-rl-" in line]
    assert lines
    assert all(f"agent-rl-{os.getpid()}-" in line for line in lines)


def test_what_of_the_host_is_shown(box: Sandbox) -> None:
    assert set(box.exec(["/bin/ls", "/"]).stdout.text.split()) <= {
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "workspace",
    }  # fmt: skip
    assert set(box.exec(["/bin/ls", "/etc"]).stdout.text.split()) <= {
        "alternatives", "group", "hosts", "ld.so.cache", "mime.types", "nsswitch.conf", "passwd",
    }  # fmt: skip


def test_command_line_of_init_shows_no_host_path_and_no_variable() -> None:
    with sandbox.create(SandboxSpec(limits=SMALL, env={"TOKEN": "pass-phrase"})) as box:
        words = box.exec(["/bin/cat", "/proc/1/cmdline"]).stdout.text.rstrip("\0").split("\0")
        environ = box.exec(["/bin/cat", "/proc/1/environ"])
    assert words[:2] == ["./bwrap", "--args"]
    assert words[3:] == ["--", "/bin/cat", "/proc/1/cmdline"]
    assert "pass-phrase" not in environ.stdout.text

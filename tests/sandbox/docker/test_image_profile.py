"""The `image` profile over an engine that maps ids: root of an image, a writable system, and nothing beyond."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec, SandboxUnavailable, docker_labels, images
from sandbox.conformance.subject import bash
from sandbox.machine import machine
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL
from tests.sandbox.docker import engine
from tests.sandbox.docker.test_docker import static_parts

pytestmark = pytest.mark.docker
LIMITS = replace(SMALL, system_bytes=8 * MIB)
_PROGRAMS = (
    "chown",
    "dd",
    "df",
    "id",
    "ls",
    "mkdir",
    "mknod",
    "mount",
    "mv",
    "rm",
    "stat",
    "touch",
    "true",
    "unshare",
)


@pytest.fixture(scope="module")
def mapped() -> Iterator[str]:
    try:
        with engine.running(mapped=True) as found:
            yield found
    except engine.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def spec(mapped: str, tmp_path_factory: pytest.TempPathFactory) -> SandboxSpec:
    root = tmp_path_factory.mktemp("root")
    listed = subprocess.run(
        ["tar", "-C", "/", "-c", "bin", "lib", "lib64", *static_parts(*_PROGRAMS)],
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "-C", str(root), "-x"], input=listed.stdout, check=True)
    (root / "usr/bin/sh").symlink_to("bash")
    for name in ("etc", "opt", "home"):
        (root / name).mkdir()
    (root / "etc/issue").write_text("an image\n")
    (root / "home").chmod(0o750)
    return SandboxSpec(base=images.import_root(root, address=mapped), profile="image", limits=LIMITS)


@pytest.fixture
def box(mapped: str, spec: SandboxSpec) -> Iterator[Sandbox]:
    with sandbox.create(spec, f"docker:{mapped}") as made:
        yield made
        assert made.exec(["/bin/true"]).reason == "ok"


@pytest.fixture
def client(mapped: str) -> Iterator[Any]:
    made = docker.APIClient(base_url=mapped)
    yield made
    made.close()


def test_the_posture_from_outside(box: Sandbox) -> None:
    seen = box.posture()
    assert (seen["uid"], seen["gid"]) == (engine.MAPPED_ROOT, engine.MAPPED_ROOT)
    assert not [group for group in seen["groups"] if group < engine.MAPPED_ROOT]
    for kind in ("effective", "permitted", "bounding", "ambient"):
        assert seen[f"{kind}_capabilities"] == 0, kind
    assert seen["no_new_privileges"] is True
    assert seen["seccomp"] == 2
    assert set(seen["private_namespaces"].values()) == {True}
    assert set(seen["descriptors"]) <= {0, 1, 2}
    assert all(line.partition("::")[2] or "docker" in line for line in seen["cgroups"])
    own = set(Path("/proc/self/cgroup").read_text().splitlines())
    assert not {line for line in seen["cgroups"] if "pids" in line or "memory" in line} & own
    assert seen["oom_score_adj"] == 1000
    assert seen["limits"]["Max core file size"] == "0"
    assert seen["limits"]["Max open files"] == str(LIMITS.open_files)
    expected = {"/dev/mqueue", "/dev/pts", "/dev/shm", "/proc", "/run", "/tmp", "/workspace"}
    assert set(seen["writable_mounts"]) == expected | {"/etc", "/home", "/opt", "/sbin", "/usr"}
    report = box.capabilities
    assert {"user_namespace", "system_size", "no_capabilities", "workspace_size"} <= report.enforced
    assert set(report.missing) == {"memory_per_process", "read_only_root", "separate_uid"}


def test_the_container_is_as_hardened_as_it_says(box: Sandbox, client: Any) -> None:
    del box
    (made,) = client.containers(filters={"label": [docker_labels.OWNER]})
    host = client.inspect_container(made["Id"])["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert not host["UsernsMode"]
    assert not host["Binds"]
    assert host["PidsLimit"] == LIMITS.processes + 2
    assert host["Memory"] == host["MemorySwap"] == LIMITS.memory_bytes


def test_programs_are_root_and_change_the_system(box: Sandbox) -> None:
    first = bash(
        box, "id -u; echo new > /etc/issue; rm /usr/bin/df; mkdir /opt/d; touch /opt/d/f; stat -c %a /home"
    )
    assert first.stdout.text == "0\n750\n"
    second = bash(
        box, "cat /etc/issue; ls /opt/d; df; echo x > /workspace/out; echo y > /new; chown 1:1 /etc/issue"
    )
    assert second.stdout.text == "new\nf\n"
    assert "Read-only file system" in second.stderr.text
    assert "Operation not permitted" in second.stderr.text
    assert box.read("out") == b"x\n"
    box.write("in", b"z")
    assert bash(box, "cat in; echo more >> in; cat in").stdout.text == "zzmore\n"
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("cd /opt/d && echo $PWD $(id -u)").stdout.text == "/opt/d 0\n"
        assert shell.run("echo s > /opt/s; cat /etc/issue").stdout.text == "new\n"


def test_what_is_written_is_bounded(box: Sandbox) -> None:
    full = bash(box, "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=/opt/big$i bs=65536 count=32 || exit; done")
    assert full.reason == "disk"
    assert "No space left" in full.stderr.text
    spread = "for d in /usr /etc /home /opt; do dd if=/dev/zero of=$d/more bs=65536 count=1; done"
    assert bash(box, spread).stderr.text.count("No space left") == 4
    assert bash(box, "rm /opt/big* && echo room > /opt/small && cat /opt/small").stdout.text == "room\n"
    many = "i=0; while echo > /opt/$i; do i=$((i+1)); done; echo $i"
    assert int(bash(box, many).stdout.text) < 8192
    for place in ("/run", "/dev/shm", "/tmp"):
        assert bash(box, f"dd if=/dev/zero of={place}/big bs=65536 count=10000").exit_code == 1


def test_forks_and_snapshots_have_the_system(box: Sandbox) -> None:
    bash(box, "echo one > /etc/issue; rm /usr/bin/df; echo w > w")
    with contextlib.closing(_Released(box)) as kept, box.fork() as child:
        look = "cat /etc/issue w; ls /usr/bin/df /opt"
        assert bash(child, look).stdout.text == "one\nw\n/opt:\n"
        bash(child, "echo two > /etc/issue; touch /opt/child; rm w")
        bash(box, "echo three > /etc/issue; touch /opt/parent")
        assert bash(child, "cat /etc/issue; ls /opt").stdout.text == "two\nchild\n"
        assert bash(box, look).stdout.text == "three\nw\n/opt:\nparent\n"
        box.restore(kept.snapshot)
        assert bash(box, look).stdout.text == "one\nw\n/opt:\n"
        child.restore(kept.snapshot)
        assert bash(child, look).stdout.text == "one\nw\n/opt:\n"


class _Released:
    def __init__(self, box: Sandbox) -> None:
        self.snapshot = box.snapshot()

    def close(self) -> None:
        self.snapshot.release()


def test_snapshots_are_correct_many_deep_and_bounded(box: Sandbox) -> None:
    snapshots = []
    with contextlib.ExitStack() as last:
        for number in range(100):
            bash(box, f"echo {number} > /opt/{number % 7}; echo {number} > /etc/issue")
            snapshots.append(box.snapshot())
            last.callback(snapshots[-1].release)
        assert bash(box, "cat /etc/issue; ls /opt").stdout.text == "99\n" + "".join(
            f"{n}\n" for n in range(7)
        )
        box.restore(snapshots[3])
        assert bash(box, "cat /etc/issue; ls /opt").stdout.text == "3\n0\n1\n2\n3\n"
        box.restore(snapshots[60])
        assert bash(box, "cat /etc/issue /opt/4").stdout.text == "60\n60\n"


def test_a_program_that_breaks_the_system_makes_no_fault(box: Sandbox) -> None:
    snapshot = box.snapshot()
    bash(box, "rm -f /usr/bin/env /usr/bin/bash")
    broken = box.exec(["/bin/true"])
    assert (broken.reason, broken.exit_code) in {("ok", 126), ("ok", 127)}
    box.restore(snapshot)
    assert bash(box, "rm -rf /usr /etc /opt 2>/dev/null; echo survived").stdout.text in {"survived\n", ""}
    assert box.exec(["/bin/true"]).exit_code in {126, 127}
    box.restore(snapshot)
    snapshot.release()
    assert box.exec(["/bin/true"]).ok


def test_root_reaches_nothing_beyond(box: Sandbox, client: Any) -> None:
    before = {one["Id"] for one in client.containers()}
    bash(box, "kill -9 1; kill -15 1; kill -9 -1; for p in /proc/[0-9]*; do p=${p#/proc/}; kill -9 $p; done")
    bash(box, "for p in /proc/[0-9]*; do for f in oom_score_adj oom_adj; do echo 500 > $p/$f; done; done")
    tries = [
        "mount -t tmpfs x /opt",
        "unshare -U true",
        "mknod /opt/k c 1 1",
        "echo 1 > /proc/sys/kernel/core_pattern",
    ]
    tries += [
        "echo x > /sys/fs/cgroup/pids/cgroup.procs",
        "mv /usr/bin/true /sbin/docker-init && echo x > /sys/x",
    ]
    for attempt in tries:
        assert not bash(box, attempt).ok, attempt
    assert bash(box, "cat /proc/1/environ /proc/1/root/x").stdout.text == ""
    assert {one["Id"] for one in client.containers()} == before


def test_the_allow_list_works_without_a_program_in_the_image(mapped: str, spec: SandboxSpec) -> None:
    with sandbox.create(replace(spec, allow=("allowed.example.com:443",)), f"docker:{mapped}") as box:
        words = "CONNECT e.example.com:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
        ask = f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{words}' >&3; cat <&3"
        assert bash(box, ask).stdout.text.startswith("HTTP/1.1 403 ")


def test_closing_leaves_nothing(mapped: str, spec: SandboxSpec, client: Any) -> None:
    def mounts() -> int:
        return len(
            machine().launcher.call(lambda: Path("/proc/thread-self/mountinfo").read_text().splitlines())
        )

    before = mounts()
    with sandbox.create(spec, f"docker:{mapped}") as box, box.fork() as child:
        bash(child, "touch /opt/x")
        child.snapshot().release()
        assert mounts() > before
    assert mounts() == before
    assert not client.containers(all=True, filters={"label": [docker_labels.OWNER]})


def test_where_it_is_refused(mapped: str, spec: SandboxSpec, backend: str) -> None:
    with pytest.raises(SandboxUnavailable, match="userns-remap"):
        sandbox.create(spec, backend)
    with pytest.raises(SandboxUnavailable, match="needs an image"):
        sandbox.create(replace(spec, base=""), f"docker:{mapped}")
    with pytest.raises(SandboxUnavailable, match="read_only_root"):
        sandbox.create(replace(spec, require=frozenset({"read_only_root"})), f"docker:{mapped}")
    with pytest.raises(SandboxUnavailable, match="bubblewrap has no profile 'image'"):
        sandbox.create(SandboxSpec(profile="image"))
    with pytest.raises(SandboxUnavailable, match="only the profile 'image'"):
        sandbox.create(SandboxSpec(), f"docker:{mapped}")


def test_a_build_at_such_an_engine_is_mapped_too(mapped: str, spec: SandboxSpec) -> None:
    text = f"FROM {spec.base}\nRUN cat /proc/self/uid_map > /map\n"
    name = images.build(text, address=mapped)
    with sandbox.create(replace(spec, base=name), f"docker:{mapped}") as box:
        assert bash(box, "cat /map").stdout.text.split() == ["0", str(engine.MAPPED_ROOT), "65536"]

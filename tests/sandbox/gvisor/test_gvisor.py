"""What the suite does not ask: that programs meet another kernel, how that is shut in, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec, SandboxUnavailable, gvisor_setup, reaper
from sandbox.cgroups import Cgroup
from sandbox.gvisor_sandbox import GvisorSandbox
from sandbox.machine import machine
from tests.sandbox.test_chaos import chaos

_SYS_CHROOT, _SYS_ADMIN = 1 << 18, 1 << 21


def _group(box: Sandbox) -> Cgroup:
    assert isinstance(box, GvisorSandbox)
    assert box._cgroup is not None
    return box._cgroup


def _named(pids: list[int], name: str) -> Iterator[int]:
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(name.encode()):
                yield pid


def _kernel(box: Sandbox) -> int:
    (found,) = _named(_group(box).members(), "runsc-sandbox")
    return found


def test_programs_meet_another_kernel(box: Sandbox) -> None:
    shown = box.exec(["/bin/bash", "-c", "uname -r; id -u; id -G; cat a/f; grep Cap /proc/self/status"])
    release, uid, groups, text = shown.stdout.text.split("\n")[:4]
    assert release != os.uname().release
    assert (uid, groups) == ("1000", "1000")
    assert text.startswith("x")
    kinds = [line.split() for line in shown.stdout.text.splitlines() if line.startswith(("Cap", "xCap"))]
    assert len(kinds) >= 4
    assert all(int(value, 16) == 0 for _, value in kinds)


def test_its_kernel_is_shut_in(box: Sandbox) -> None:
    """Seen from the host: an empty root, a filter, and two capabilities that hold in its own user namespace only."""
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("echo up").ok
        kernel = _kernel(box)
        status = Path(f"/proc/{kernel}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["CapEff"], 16) & ~(_SYS_CHROOT | _SYS_ADMIN) == 0
        assert fields["NoNewPrivs"] == "1"
        assert fields["Seccomp"] == "2"
        uids = machine().uids
        assert uids is not None
        assert int(fields["Uid"].split()[0]) >= uids.first
        assert {entry.name for entry in Path(f"/proc/{kernel}/root").iterdir()} <= {"etc", "proc"}
        for namespace in ("user", "mnt", "net", "pid", "ipc", "uts"):
            assert os.readlink(f"/proc/{kernel}/ns/{namespace}") != os.readlink(f"/proc/self/ns/{namespace}")


def test_a_kernel_that_dies_is_the_programs_doing_and_no_fault(box: Sandbox) -> None:
    assert isinstance(box, GvisorSandbox)
    assert box._stack is not None
    (root,) = box._stack.open()
    results: list[sandbox.ExecResult] = []
    words = ["/bin/bash", "-c", "echo running; echo > up; sleep 30"]
    thread = threading.Thread(target=lambda: results.append(box.exec(words)))
    thread.start()
    try:
        until = time.monotonic() + 20
        while "up" not in os.listdir(root) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(_kernel(box), signal.SIGKILL)
    finally:
        os.close(root)
        thread.join()
    assert [(one.exit_code, one.stdout.text) for one in results] == [(-9, "running\n")]


def test_a_shell_whose_kernel_dies_starts_anew(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        shell.run("x=1")
        os.kill(_kernel(box), signal.SIGKILL)
        assert shell.run("echo $x").exit_code == -9
        assert shell.run("echo [$x]").stdout.text == "[]\n"


def test_what_cannot_be_met_is_refused() -> None:
    with pytest.raises(SandboxUnavailable, match="no network at all"):
        sandbox.create(SandboxSpec(allow=("pypi.org:443",)), "gvisor")
    with pytest.raises(SandboxUnavailable, match="knows no base"):
        sandbox.create(SandboxSpec(base="image"), "gvisor")
    with pytest.raises(SandboxUnavailable, match="memory of all processes"):
        sandbox.create(SandboxSpec(require=frozenset({"memory_per_process"})), "gvisor")
    with pytest.raises(ValueError, match="takes no address"):
        sandbox.create(SandboxSpec(), "gvisor:somewhere")


def test_without_runsc_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gvisor_setup, "_PATH", str(tmp_path))
    monkeypatch.setattr(gvisor_setup, "_reports", {})
    assert "apt-get install runsc" in sandbox.capabilities("gvisor").missing["exec"]
    with pytest.raises(SandboxUnavailable, match="apt-get install runsc"):
        sandbox.create(SandboxSpec(), "gvisor")


_HARNESS = """
import sandbox, threading, time
box = sandbox.create(sandbox.SandboxSpec(), "gvisor")
shell = box.shell()
shell.run("sleep 63.21 & echo up")
threading.Thread(target=box.exec, args=(["/bin/sleep", "63.22"],), kwargs={"timeout_s": 60}).start()
while len([1 for pid in box._cgroup.members() if b"runsc-sandbox" in open(f"/proc/{pid}/cmdline", "rb").read()]) < 2:
    time.sleep(0.02)
print(box._family.uid, box._family.runner, box._cgroup.pids, flush=True)
time.sleep(60)
"""


def test_a_killed_harness_leaves_nothing() -> None:
    harness = subprocess.Popen([sys.executable, "-c", _HARNESS], stdout=subprocess.PIPE)
    assert harness.stdout is not None
    with harness.stdout:
        uid, runner, group = harness.stdout.readline().decode().split()
        harness.kill()
        harness.wait()
    until = time.monotonic() + 20
    while (left := reaper.clean()) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == reaper.audit() == []
    assert not Path(group).exists()
    assert _of_users({int(uid), int(runner)}) == []


def _of_users(uids: set[int]) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                entry.name.isdigit()
                and entry.stat().st_uid in uids
                and " Z " not in (entry / "stat").read_text()
            ):
                found.append(entry.name)
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_10_times() -> None:
    first = secrets.randbelow(10**6)
    print(f"chaos seeds {first} to {first + 9}")
    for seed in range(first, first + 10):
        chaos(seed, backend="gvisor", within_s=8.0)

"""Nothing is left: processes, mounts, folders, descriptors, groups, user ids."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sandbox
from sandbox import SandboxSpec
from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.machine import machine
from tests.sandbox.conftest import SMALL, needs


def traces() -> dict[str, object]:
    ground = machine()
    groups = [folder for root in ("/sys/fs/cgroup",) for folder, _, _ in os.walk(root) if _is_ours(folder)]
    mounts = ground.launcher.call(lambda: Path("/proc/thread-self/mountinfo").read_text()).count(
        " - tmpfs sandbox "
    )
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
        "groups": sorted(groups),
        "mounts": mounts,
        "host mounts": Path("/proc/self/mountinfo").read_text().count(" - tmpfs sandbox "),
        "layers": sorted(os.listdir(f"/proc/self/fd/{ground.base_fd}")),
        "live": len(ground.live),
    }


def _is_ours(folder: str) -> bool:
    return f"agent-rl-{os.getpid()}-" in folder


def test_60_lives_leave_nothing() -> None:
    sandbox.create(SandboxSpec(limits=SMALL)).close()
    gc.collect()
    before = traces()
    for number in range(60):
        with sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"x"})) as box:
            snapshot = box.snapshot()
            box.write("g", b"y")
            with box.fork() as child:
                child.write("h", b"z")
                child.restore(snapshot)
            if number % 20 == 0:
                box.exec(["/bin/bash", "-c", "sleep 60 & exit 1"])
                with contextlib.closing(box.shell()) as shell:
                    shell.run("sleep 60 &")
            snapshot.release()
    gc.collect()
    assert traces() == before


def test_failures_leave_nothing() -> None:
    sandbox.create(SandboxSpec(limits=SMALL)).close()
    before = traces()
    for _ in range(5):
        with pytest.raises(ValueError, match=r"\.\."):
            sandbox.create(SandboxSpec(limits=SMALL, files={"../x": b""}))
        with sandbox.create(SandboxSpec(limits=SMALL)) as box:
            for argv in (["/bin/sleep", "60"], ["absent"], ["x" * 200_000]):
                with contextlib.suppress(ValueError):
                    box.exec(argv, timeout_s=0.05)
            with pytest.raises(ValueError, match="create it first"):
                box.exec(["/bin/true"], cwd="absent")
    gc.collect()
    assert traces() == before


def test_interrupt_in_the_middle_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        assert box.exec(["/bin/true"]).ok  # from now on it keeps the descriptors of its counters
        before = traces()
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            box.exec(["/bin/sleep", "60"])
        timer.join()
        assert traces() == before
        assert box.exec(["/bin/true"]).ok


def test_user_ids_are_claimed_and_given_back() -> None:
    needs("separate_uid")
    made = [sandbox.create(SandboxSpec(limits=SMALL)) for _ in range(3)]
    try:
        child = made[0].fork()
        assert len({box.posture()["uid"] for box in made}) == 3
        assert child.posture()["uid"] == made[0].posture()["uid"]
        child.close()
    finally:
        for box in made:
            box.close()


SCRIPT = """
import os, sys, time, sandbox
box = sandbox.create(sandbox.SandboxSpec(files={"f": b"x"}))
shell = box.shell()
shell.run("sleep 61.%d & sleep 61.%d & setsid sleep 61.%d &" % ((os.getpid(),) * 3))
print("ready", flush=True)
"""


def _start(more: str, user: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*user, sys.executable, "-c", SCRIPT + more], stdout=subprocess.PIPE)


def _gone(text: str) -> bool:
    for _ in range(100):
        found = subprocess.run(["pgrep", "-f", text], capture_output=True, check=False).stdout.split()
        if not found:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("ending", ["pass", "sys.exit(3)", "raise RuntimeError", "os.kill(os.getpid(), 9)"])
def test_the_end_of_the_harness_is_the_end_of_its_sandboxes(ending: str) -> None:
    if ending == "raise RuntimeError":
        ending = "sys.stderr = open(os.devnull, 'w'); raise RuntimeError"
    process = _start(ending)
    process.communicate()
    assert _gone(f"sleep 61[.]{process.pid}")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert " - tmpfs sandbox " not in mounts
    folders = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if f"agent-rl-{process.pid}-" in folder]
    if ending.startswith("os.kill"):  # nothing could run then; the next process sweeps
        process = _start("pass")
        process.communicate()
        folders = [folder for folder in folders if os.path.exists(folder)]
    assert folders == []


def test_a_forked_child_of_the_harness_starts_afresh_and_leaves_the_parent_alone() -> None:
    with sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"parent's"})) as box:
        code = """
import os, sandbox
box = sandbox.create(sandbox.SandboxSpec(files={"f": b"parent's"}))
if (pid := os.fork()) == 0:
    try:
        box.exec(["/bin/true"])
    except sandbox.SandboxClosed:
        box.close()
    with sandbox.create() as own:
        os._exit(0 if own.exec(["/bin/true"]).ok else 1)
assert os.waitpid(pid, 0)[1] == 0
assert box.exec(["/bin/cat", "f"]).stdout.text == "parent's"
"""
        subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
        assert isinstance(box, BubblewrapSandbox)
        assert box.read("f") == b"parent's"

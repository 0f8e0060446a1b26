"""The ledger and the reaper: dead owners leave nothing, living and foreign ones are not touched."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox import SandboxSpec, identity, ledger, reaper
from sandbox.ledger import PREFIX, Ledger, dead_owners
from tests.sandbox.conftest import SMALL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger folder of this test's own, so that tests beside it are not reaped, nor reap."""
    folder = tmp_path / "owners"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(ledger, "folders", lambda: [folder])
    return folder


def _die(folder: Path, code: str) -> str:
    """Run a process that opens a ledger there, does something and is killed; its owner's name."""
    text = f"""
import os, signal
from pathlib import Path
from sandbox.ledger import PREFIX, Ledger
l = Ledger(Path({str(folder)!r}))
{code}
print(l.owner, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, check=False)
    return done.stdout.decode().strip()


def test_the_living_are_left_alone(folder: Path) -> None:
    mine = Ledger(folder)
    tree = folder.parent / f"{PREFIX}{mine.owner}"
    tree.mkdir()
    mine.record("folder", str(tree))
    assert reaper.audit() == reaper.clean() == []
    assert tree.exists()
    mine.close()
    assert os.listdir(folder) == []


def test_folders_of_the_dead_go_and_only_those_that_bear_their_name(folder: Path) -> None:
    other = folder.parent / "innocent"
    other.mkdir()
    code = f"""
for path in (f"{folder.parent}/{{PREFIX}}{{l.owner}}", {str(other)!r}, "relative"):
    l.record("folder", path)
os.makedirs(f"{folder.parent}/{{PREFIX}}{{l.owner}}/deep/er")
"""
    owner = _die(folder, code)
    tree = str(folder.parent / f"{PREFIX}{owner}")
    assert reaper.audit() == [f"folder {tree}", f"owner {owner}"]
    assert reaper.clean() == [f"folder {tree}", f"owner {owner}"]
    assert reaper.audit() == reaper.clean() == []
    assert other.exists()


def test_a_forked_child_does_not_keep_a_dead_owner_alive() -> None:
    code = """
import os, signal, sys, sandbox
from sandbox.machine import machine
box = sandbox.create()
owner, parent = machine().ledger.owner, os.getpid()
if os.fork() == 0:  # the child kills: by then it has dropped what it must not keep
    os.kill(parent, signal.SIGKILL)
    print(owner, os.getpid(), flush=True)
    import time; time.sleep(60); os._exit(0)
signal.pause()
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    owner, child = process.stdout.readline().decode().split()
    process.wait()
    try:
        path = next(path for path in ledger.folders() if (path / owner).exists()) / owner
        reaper.clean()
        assert not path.exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
        process.stdout.close()


@pytest.mark.parametrize("field", ["boot", "pid_namespace"])
def test_foreign_owners_go_by_their_lease_only(folder: Path, field: str) -> None:
    who = {"boot": identity.boot_id(), "pid_namespace": identity.pid_namespace(), "pid": 1, "start": 1}
    tree = folder.parent / f"{PREFIX}foreign"
    tree.mkdir()
    (folder / "foreign").write_text(
        json.dumps(who | {field: "other"}) + f"\nfolder {tree}\nuid {os.getuid()}\n"
    )
    assert reaper.clean() == []
    old = time.time() - ledger.LEASE_S - 10
    os.utime(folder / "foreign", (old, old))
    assert reaper.clean() == [f"folder {tree}", "owner foreign"]


@pytest.mark.parametrize("text", ["", "{", '{"boot": 1', "[]\n", "\xff\x00\n", "{}\n"])
def test_an_owner_that_died_while_it_began_made_nothing(folder: Path, text: str) -> None:
    (folder / "early").write_text(text, encoding="latin-1")
    assert reaper.clean() == ["owner early"]


def test_the_last_line_counts_only_when_it_is_whole(folder: Path) -> None:
    who = {"boot": identity.boot_id(), "pid_namespace": identity.pid_namespace(), "pid": 1, "start": 1}
    (folder / "cut").write_text(json.dumps(who) + "\nuid 17\nfolder /a/b\nuid 1900000")
    with dead_owners(folder) as dead:
        assert [owner.things["uid"] for owner in dead] == [["17"]]


def test_a_folder_that_others_can_write_is_not_believed(folder: Path) -> None:
    (folder / "forged").write_text("{}\n")
    folder.chmod(0o777)
    assert reaper.clean() == []
    with pytest.raises(PermissionError, match="this user alone"):
        Ledger(folder)


def test_a_line_break_is_refused(folder: Path) -> None:
    mine = Ledger(folder)
    with pytest.raises(ValueError, match="line break"):
        mine.record("folder", "/a\nfolder /b")
    mine.close()


def test_mounts_in_a_dead_owners_folder_are_unmounted_first(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    code = f"""
tree = f"{folder.parent}/{{PREFIX}}{{l.owner}}"
l.record("folder", tree)
os.makedirs(tree + "/a b/inner")
import signal
import subprocess
subprocess.run(["mount", "-t", "tmpfs", "none", tree + "/a b"], check=True)
"""
    owner = _die(folder, code)
    tree = str(folder.parent / f"{PREFIX}{owner}")
    if not os.path.ismount(f"{tree}/a b"):
        pytest.skip("no mount is allowed here")
    assert reaper.clean() == [f"mount {tree}/a b", f"folder {tree}", f"owner {owner}"]
    assert reaper.audit() == []


@contextlib.contextmanager
def _living() -> Iterator[sandbox.Sandbox]:
    with sandbox.create(SandboxSpec(limits=SMALL, files={"f": b"mine"})) as box:
        shell = box.shell()
        shell.run("x=1")
        yield box
        assert shell.run("echo $x").stdout.text == "1\n"
        assert box.read("f") == b"mine"


def test_survivors_are_killed_by_evidence_and_nobody_else() -> None:
    """A launcher that dies before bubblewrap follows it leaves a program running: made here by hand."""
    code = """
import os, signal, subprocess, sys
import sandbox
from sandbox.machine import machine
box = sandbox.create(sandbox.SandboxSpec())
m = machine()
uid, folder = box._family.uid, m.bin
pids, null = [], {"stdout": subprocess.DEVNULL}
def go():
    pids.append(subprocess.Popen(["sleep", "62"], cwd=folder, **null).pid)  # as a launch on its way
    if uid is not None:
        pids.append(subprocess.Popen(["sleep", "62"], user=uid, group=uid, **null).pid)
    if box._cgroup is not None:
        join = "echo 0 > $0 && exec sleep 62"
        pids.append(subprocess.Popen(["sh", "-c", join, box._cgroup.procs_files[0]], **null).pid)
m.launcher.call(go)
stranger = subprocess.Popen(["sleep", "62"], **null).pid
print(stranger, *pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with _living():
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
        stranger, *pids = (int(pid) for pid in done.stdout.split())
        time.sleep(0.1)
        try:
            assert pids
            removed = set(reaper.clean())
            assert {f"process {pid}" for pid in pids} <= removed
            assert f"process {stranger}" not in removed
            assert os.path.exists(f"/proc/{stranger}")
        finally:
            os.kill(stranger, 9)


def test_programs_with_names_that_are_no_text_hinder_neither_kill_nor_reaper() -> None:
    name = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'\\xff\\xfe(\\n) S', 0, 0, 0); "
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        python = ["/usr/bin/python3", "-I", "-S", "-c"]
        result = box.exec([*python, name + "time.sleep(60)"], timeout_s=1.0)
        assert result.reason == "timeout"
        with contextlib.closing(box.shell()) as shell:
            shell.run("x=1")
            code = name + "print('named', flush=True); time.sleep(60)"
            stranger = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            assert stranger.stdout is not None
            with stranger.stdout:
                stranger.stdout.readline()
            test_survivors_are_killed_by_evidence_and_nobody_else()
            assert stranger.poll() is None
            stranger.kill()
            stranger.wait()

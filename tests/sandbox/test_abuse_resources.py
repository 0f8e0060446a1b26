"""Cases 1 to 18 of the abuse checklist: each ends in a typed result, and the sandbox works afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL, needs, python


@pytest.fixture(autouse=True)
def _the_next_task_is_clean() -> Iterator[None]:
    yield
    with sandbox.create(SandboxSpec(limits=SMALL)) as fresh:
        assert (
            fresh.exec(["/bin/ls", "-A", ".", "/tmp", "/dev/shm"]).stdout.text == ".:\n\n/dev/shm:\n\n/tmp:\n"
        )


def test_abuse_01_fork_bomb(box: Sandbox) -> None:
    needs("processes")
    code = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        count += 1
except OSError: print(count)
"""
    result = python(box, code)
    assert result.reason == "pids"
    assert 10 <= int(result.stdout.text) <= SMALL.processes
    result = box.exec(["/bin/bash", "-c", "f() { f | f & }; f; sleep 60"], timeout_s=1.5)
    assert result.reason in ("timeout", "pids")


def test_abuse_02_thread_bomb(box: Sandbox) -> None:
    needs("processes")
    code = """
import os, threading, time
count = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError:
    print(count, flush=True)
    os._exit(0)
"""
    result = python(box, code)
    assert result.reason == "pids"
    assert 10 <= int(result.stdout.text) <= SMALL.processes


def test_abuse_03_memory_bomb_in_one_process(box: Sandbox) -> None:
    result = python(box, "x = []\nwhile True: x.append(bytearray(1 << 20))")
    if "memory_total" in box.capabilities.enforced:
        assert (result.reason, result.exit_code) == ("oom", None)
    else:
        assert result.exit_code == 1
        assert "MemoryError" in result.stderr.text


def test_abuse_04_memory_bomb_spread_over_children(box: Sandbox) -> None:
    needs("memory_total")
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(20 << 20)
        time.sleep(60)
for _ in range(8): os.wait()
"""
    code = code.replace("time.sleep(60)", "time.sleep(0.3); os._exit(0)")
    assert python(box, code).reason == "oom"


def test_abuse_05_filling_every_writable_place(box: Sandbox) -> None:
    code = """
import os
for place, limit in (("/tmp", 4), ("/dev/shm", 4), ("/workspace", 4), ("/dev", 0), ("/", 0), ("/etc", 0), ("/usr", 0)):
    written = 0
    try:
        for number in range(8):
            with open(f"{place}/fill{number}", "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(bytes(1 << 16))
    except OSError as error:
        print(place, written <= limit << 20, error.errno)
    else:
        print(place, "unlimited")
"""
    lines = python(box, code).stdout.text.splitlines()
    if "workspace_size" not in box.capabilities.enforced:
        lines = [line for line in lines if not line.startswith("/workspace")]
    for line in lines:
        _place, bounded, number = line.split()
        assert bounded == "True", line
        assert number in ("28", "30", "13"), line  # ENOSPC, EROFS, EACCES
    assert len(lines) >= 6


def test_abuse_06_sparse_files_inodes_and_deep_folders(box: Sandbox) -> None:
    needs("workspace_size")
    sparse = python(box, "f = open('big', 'wb'); f.truncate(1 << 40)")
    assert not sparse.ok  # SIGXFSZ is ignored by Python: EFBIG
    many = python(box, "for i in range(100000): open(str(i), 'w').close()")
    assert "No space left" in many.stderr.text
    box.exec(["/usr/bin/find", ".", "-delete"])
    python(box, "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')")
    with box.fork() as child:
        assert child.exec(["/bin/ls"]).stdout.text == "d\n"


ENDLESS = {
    "lines": "while True: w(b'line\\n' * 4096)",
    "one line without an end": "while True: w(b'x' * 65536)",
    "invalid UTF-8": "while True: w(b'\\xff\\xfe' * 32768)",
    "NULs": "while True: w(bytes(65536))",
    "ANSI": "while True: w(b'\\x1b[2J\\x1b]0;title\\x07' * 4096)",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_abuse_07_infinite_stdout(box: Sandbox, kind: str) -> None:
    result = python(box, f"import sys\nw = sys.stdout.buffer.write\n{ENDLESS[kind]}")
    assert (result.reason, result.exit_code) == ("output", None)
    assert result.stdout.total_bytes > SMALL.kill_output_bytes
    assert len(result.stdout.head) + len(result.stdout.tail) == SMALL.max_output_bytes
    assert "bytes cut" in result.stdout.text


def test_abuse_08_infinite_stderr_with_quiet_stdout(box: Sandbox) -> None:
    result = python(box, "import sys\nwhile True: sys.stderr.buffer.write(b'e' * 65536)")
    assert result.reason == "output"
    assert result.stdout.total_bytes == 0
    assert result.stderr.total_bytes > SMALL.kill_output_bytes


def test_abuse_09_descriptor_exhaustion(box: Sandbox) -> None:
    result = python(
        box,
        "x = []\ntry:\n  while True: x.append(open('/dev/null'))\nexcept OSError as e: print(len(x), e.errno)",
    )
    assert result.stdout.text == f"{SMALL.open_files - 3} 24\n"


def test_abuse_10_spinning_on_all_cores_ends_at_the_deadline(box: Sandbox) -> None:
    result = box.exec(
        ["/bin/bash", "-c", "for i in 1 2 3 4; do (while :; do :; done) & done; wait"], timeout_s=0.6
    )
    assert result.reason == "timeout"


def test_abuse_12_loop_that_ignores_sigterm(box: Sandbox) -> None:
    started = time.monotonic()
    result = box.exec(
        ["/bin/bash", "-c", "trap '' TERM INT HUP QUIT; while :; do sleep 0.1; done"], timeout_s=0.5
    )
    assert result.reason == "timeout"
    assert time.monotonic() - started < 5


def test_abuse_13_daemon_in_its_own_session_holding_stdout(box: Sandbox) -> None:
    started = time.monotonic()
    result = box.exec(["/bin/bash", "-c", "setsid sleep 61.13 & echo done"])
    assert (result.reason, result.exit_code, result.stdout.text) == ("ok", 0, "done\n")
    assert time.monotonic() - started < 5
    assert not _alive("sleep\x0061.13")


def test_abuse_14_double_forked_daemon_writing_afterwards(box: Sandbox) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        open("late", "a").write("x")
        time.sleep(0.001)
time.sleep(0.05)
"""
    assert python(box, code).ok
    before = box.read("late")
    time.sleep(0.1)
    assert box.read("late") == before


def test_abuse_15_stopped_process(box: Sandbox) -> None:
    assert box.exec(["/bin/bash", "-c", "kill -STOP $$"], timeout_s=0.4).reason == "timeout"


def test_abuse_16_waiting_for_a_pipe_that_nobody_opens(box: Sandbox) -> None:
    assert box.exec(["/bin/bash", "-c", "mkfifo p; cat p"], timeout_s=0.4).reason == "timeout"


def test_abuse_17_killing_everyone_and_pid_1(box: Sandbox) -> None:
    assert box.exec(["/bin/bash", "-c", "kill -9 1; kill -9 -1; echo alive"]).stdout.text == "alive\n"


def test_abuse_18_nothing_runs_between_programs(box: Sandbox) -> None:
    box.exec(["/bin/bash", "-c", "nohup sleep 61.18 >/dev/null 2>&1 & disown"])
    count = "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))"
    assert python(box, count).stdout.text == "2\n"  # bubblewrap's init and python
    assert not _alive("sleep\x0061.18")


def test_workspace_of_a_fork_counts_what_the_parent_wrote() -> None:
    needs("workspace_size", "overlay")
    with sandbox.create(SandboxSpec(limits=SMALL)) as box:
        box.write("a", bytes(1 * MIB))
        with box.fork() as child:
            result = child.exec(["/bin/dd", "if=/dev/zero", "of=b", "bs=1M", "count=8"])
            assert result.exit_code == 1
            assert "No space left" in result.stderr.text
            assert len(child.read("b", max_bytes=4 * MIB)) <= 3 * MIB


def _alive(cmdline: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if cmdline in path.read_text():
                return True
        except OSError:
            continue
    return False

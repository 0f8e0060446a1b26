"""Cases 1 to 18 of the abuse checklist: each ends in a typed result, and the sandbox works afterwards."""

from __future__ import annotations

import time
from pathlib import Path

from sandbox.base import Sandbox
from sandbox.conformance.subject import SMALL, Subject, bash, equal, python, true
from sandbox.types import ExecResult

_ENDLESS = {
    "lines": "while True: w(b'line\\n' * 4096)",
    "one line without an end": "while True: w(b'x' * 65536)",
    "invalid UTF-8": "while True: w(b'\\xff\\xfe' * 32768)",
    "NULs": "while True: w(bytes(65536))",
    "ANSI": "while True: w(b'\\x1b[2J\\x1b]0;title\\x07' * 4096)",
}
_FORKS = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        count += 1
except OSError: print(count)
"""
_THREADS = """
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
_FILL = """
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
        print(place, False, 0)
"""
_LATE = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        open("late", "a").write("x")
        time.sleep(0.001)
time.sleep(0.1)
"""


def _next_is_clean(subject: Subject) -> None:
    with subject.create() as fresh:
        listed = fresh.exec(["/bin/ls", "-A", ".", "/tmp"]).stdout.text
        equal(listed, ".:\n\n/tmp:\n", "the next sandbox")


def _alive(cmdline: str) -> bool:
    """Whether a program of this machine has these words in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if cmdline in path.read_text(errors="replace"):
                return True
        except OSError:
            continue
    return False


def abuse_01_fork_bomb(subject: Subject) -> None:
    """Stops at the limit, with reason `pids`."""
    subject.needs("processes")
    with subject.box() as box:
        result = python(box, _FORKS)
        equal(result.reason, "pids", "reason")
        true(
            10 <= int(result.stdout.text) <= SMALL.processes, f"forks before the limit: {result.stdout.text}"
        )
        result = bash(box, "f() { f | f & }; f; sleep 60", timeout_s=1.5)
        true(result.reason in ("timeout", "pids"), f"a fork bomb must end by limit, not with {result.reason}")
    _next_is_clean(subject)


def abuse_02_thread_bomb(subject: Subject) -> None:
    """Threads count as processes."""
    subject.needs("processes")
    with subject.box() as box:
        result = python(box, _THREADS)
        equal(result.reason, "pids", "reason")
        true(
            10 <= int(result.stdout.text) <= SMALL.processes,
            f"threads before the limit: {result.stdout.text}",
        )


def abuse_03_memory_bomb(subject: Subject) -> None:
    """In one process."""
    with subject.box() as box:
        result = python(box, "x = []\nwhile True: x.append(bytearray(1 << 20))")
        if "memory_total" in subject.report.enforced:
            equal((result.reason, result.exit_code), ("oom", None), "status")
        else:
            subject.needs("memory_per_process")
            true("MemoryError" in result.stderr.text, f"memory must run out, but: {result.stderr.text!r}")
    _next_is_clean(subject)


def abuse_04_memory_bomb_of_children(subject: Subject) -> None:
    """Each small, all together too large."""
    subject.needs("memory_total")
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(20 << 20)
        time.sleep(0.5); os._exit(0)
for _ in range(8): os.wait()
"""
    with subject.box() as box:
        equal(python(box, code).reason, "oom", "reason")


def abuse_05_filling_every_place(subject: Subject) -> None:
    """All that can be written is bounded, the rest cannot be written."""
    subject.needs("workspace_size")
    with subject.box() as box:
        lines = python(box, _FILL).stdout.text.splitlines()
        equal(len(lines), 7, "places tried")
        for line in lines:
            _, bounded, number = line.split()
            true(
                bounded == "True" and number in ("28", "30", "13"), f"unbounded: {line}"
            )  # ENOSPC, EROFS, EACCES
    _next_is_clean(subject)


def abuse_06_sparse_inodes_and_depth(subject: Subject) -> None:
    """Sparse files, a hundred thousand files, 1,500 folders in one another."""
    subject.needs("workspace_size")
    with subject.box() as box:
        true(
            not python(box, "f = open('big', 'wb'); f.truncate(1 << 40)").ok,
            "a file of 1 TiB must be refused",
        )
        many = python(box, "for i in range(100000): open(str(i), 'w').close()")
        true("No space left" in many.stderr.text, f"inodes must run out, but: {many.stderr.text[-200:]!r}")
        box.exec(["/usr/bin/find", ".", "-delete"])
        python(box, "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')")
        with box.fork() as child:
            equal(child.exec(["/bin/ls"]).stdout.text, "d\n", "a fork of the deep tree")


def abuse_07_infinite_stdout(subject: Subject) -> None:
    """Of every kind, killed with reason `output`, head and tail kept."""
    with subject.box() as box:
        for kind, code in _ENDLESS.items():
            result = python(box, f"import sys\nw = sys.stdout.buffer.write\n{code}")
            equal((result.reason, result.exit_code), ("output", None), kind)
            true(
                result.stdout.total_bytes > SMALL.kill_output_bytes,
                f"{kind}: {result.stdout.total_bytes} bytes",
            )
            kept = len(result.stdout.head) + len(result.stdout.tail)
            equal(kept, SMALL.max_output_bytes, f"{kind}: bytes kept")


def abuse_08_infinite_stderr(subject: Subject) -> None:
    """With quiet standard output."""
    with subject.box() as box:
        result = python(box, "import sys\nwhile True: sys.stderr.buffer.write(b'e' * 65536)")
        equal((result.reason, result.stdout.total_bytes), ("output", 0), "status")


def abuse_09_descriptors(subject: Subject) -> None:
    """Run out at the limit."""
    code = (
        "x = []\ntry:\n  while True: x.append(open('/dev/null'))\nexcept OSError as e: print(e.errno, len(x))"
    )
    with subject.box() as box:
        number, count = python(box, code).stdout.text.split()
        true(number == "24" and int(count) < SMALL.open_files, f"{count} descriptors, errno {number}")


def abuse_10_spinning(subject: Subject) -> None:
    """On all cores, ended at the deadline."""
    script = "for i in 1 2 3 4; do (while :; do :; done) & done; wait"
    with subject.box() as box:
        equal(bash(box, script, timeout_s=0.8).reason, "timeout", "reason")


def abuse_12_ignored_sigterm(subject: Subject) -> None:
    """Does not delay the end."""
    with subject.box() as box:
        result = _timed(box, "trap '' TERM INT HUP QUIT; while :; do sleep 0.1; done", 0.5, 10)
        equal(result.reason, "timeout", "reason")


def abuse_13_daemon_holding_stdout(subject: Subject) -> None:
    """A session of its own keeps nobody waiting, and dies."""
    with subject.box() as box:
        result = _timed(box, "setsid sleep 61.13 & echo done", 10, 8)
        equal((result.reason, result.exit_code, result.stdout.text), ("ok", 0, "done\n"), "status")
        true(not _alive("61.13"), "the daemon must be dead")


def abuse_14_daemon_writing_afterwards(subject: Subject) -> None:
    """A double fork writes nothing once `exec` has returned."""
    with subject.box() as box:
        true(python(box, _LATE).ok, "the program must succeed")
        before = box.read("late")
        time.sleep(0.2)
        equal(len(box.read("late")), len(before), "bytes of the file, a moment later")


def abuse_15_stopped_process(subject: Subject) -> None:
    """Ends at the deadline."""
    with subject.box() as box:
        equal(bash(box, "kill -STOP $$", timeout_s=0.6).reason, "timeout", "reason")


def abuse_16_waiting_for_a_pipe(subject: Subject) -> None:
    """That nobody opens: ends at the deadline."""
    with subject.box() as box:
        equal(bash(box, "mkfifo p; cat p", timeout_s=0.6).reason, "timeout", "reason")


def abuse_17_killing_everyone(subject: Subject) -> None:
    """Reaches neither the init of the sandbox nor anything outside; if it does, the result is `killed`."""
    with subject.box() as box:
        result = bash(box, "kill -9 1; kill -9 -1; echo alive")
        true(
            result.stdout.text == "alive\n" or result.reason == "killed",
            f"the program must live on or be `killed`, but: {result}",
        )


def abuse_18_nothing_between_programs(subject: Subject) -> None:
    """What one program left in the background is gone when the next begins."""
    with subject.box() as box:
        bash(box, "nohup sleep 61.18 >/dev/null 2>&1 & disown")
        found = bash(box, "grep -l 61[.]18 /proc/[0-9]*/cmdline 2>/dev/null").stdout.text
        equal(found, "", "leftovers that the next program sees")
        true(not _alive("61.18"), "the background program must be dead")


def _timed(box: Sandbox, script: str, timeout_s: float, most_s: float) -> ExecResult:
    started = time.monotonic()
    result = bash(box, script, timeout_s=timeout_s)
    took = time.monotonic() - started
    true(took < most_s, f"the program must end within {most_s} s, but it took {took:.1f} s")
    return result


CASES = (
    abuse_01_fork_bomb,
    abuse_02_thread_bomb,
    abuse_03_memory_bomb,
    abuse_04_memory_bomb_of_children,
    abuse_05_filling_every_place,
    abuse_06_sparse_inodes_and_depth,
    abuse_07_infinite_stdout,
    abuse_08_infinite_stderr,
    abuse_09_descriptors,
    abuse_10_spinning,
    abuse_12_ignored_sigterm,
    abuse_13_daemon_holding_stdout,
    abuse_14_daemon_writing_afterwards,
    abuse_15_stopped_process,
    abuse_16_waiting_for_a_pipe,
    abuse_17_killing_everyone,
    abuse_18_nothing_between_programs,
)

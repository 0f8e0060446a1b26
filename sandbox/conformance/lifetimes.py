"""Abuse cases 12 to 19: programs that will not end, and a harness that does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from sandbox.conformance.report import Broken
from sandbox.conformance.subject import Subject, bash, demand, equal, python, succeeds


def _alive(subject: Subject, word: str) -> bool:
    """Whether a process of this machine has `word` in its command line; False where that cannot be seen."""
    return subject.shares_host and any(word in line for line in _command_lines())


def _command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text(errors="replace").replace("\0", " "))
        except OSError:
            continue
    return lines


def _number(case: int) -> str:
    """Seconds to sleep that no other process sleeps."""
    return f"6{case}.{os.getpid()}{time.monotonic_ns() % 10**6}"


def abuse_12_ignoring_sigterm(subject: Subject) -> None:
    """Killed nevertheless."""
    with subject.box() as box:
        started = time.monotonic()
        script = "trap '' TERM INT HUP QUIT; while :; do sleep 0.1; done"
        equal(bash(box, script, timeout_s=subject.deadline_s).reason, "timeout", "reason")
        demand(time.monotonic() - started < 15 + subject.deadline_s, "the deadline was overrun by 15 s")


def abuse_13_daemon_holding_stdout(subject: Subject) -> None:
    """In a session of its own: the result does not wait for it, and it is gone."""
    number = _number(13)
    with subject.box() as box:
        started = time.monotonic()
        result = bash(box, f"setsid sleep {number} & echo done")
        equal((result.reason, result.exit_code, result.stdout.text), ("ok", 0, "done\n"), "result")
        demand(time.monotonic() - started < 15, "the result waited for the daemon")
        demand(not _alive(subject, f"sleep {number}"), "the daemon is alive")


def abuse_14_daemon_writing_afterwards(subject: Subject) -> None:
    """Forked twice."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        open("late", "a").write("x")
        time.sleep(0.001)
time.sleep(0.1)
"""
    with subject.box() as box:
        succeeds(python(box, code), "the program")
        before = box.read("late")
        time.sleep(0.2)
        equal(len(box.read("late")), len(before), "bytes written after exec returned")


def abuse_15_stopped_process(subject: Subject) -> None:
    """Waits for its deadline and not longer."""
    with subject.box() as box:
        equal(bash(box, "kill -STOP $$", timeout_s=subject.deadline_s).reason, "timeout", "reason")


def abuse_16_waiting_for_a_pipe(subject: Subject) -> None:
    """That nobody opens."""
    with subject.box() as box:
        equal(bash(box, "mkfifo p; cat p", timeout_s=subject.deadline_s).reason, "timeout", "reason")


def abuse_17_killing_everyone(subject: Subject) -> None:
    """And process 1: it is never a fault of the sandbox."""
    with subject.box() as box:
        demand(bash(box, "kill -9 1; kill -9 -1; echo alive").reason in ("ok", "killed"), "a fault")


def abuse_18_background_process_at_grading_time(subject: Subject) -> None:
    """The next program sees none."""
    number = _number(18)
    with subject.box() as box:
        bash(box, f"nohup sleep {number} >/dev/null 2>&1 & disown")
        code = "from glob import glob\nlines = [open(n, 'rb').read() for n in glob('/proc/[0-9]*/cmdline')]\n"
        code += "print([line for line in lines if b'sl' b'eep' in line])"
        equal(python(box, code).stdout.text, "[]\n", "programs that sleep")
        demand(not _alive(subject, f"sleep {number}"), "the process is alive")


_HARNESS = """
import sys, time, sandbox
from sandbox import SandboxSpec
box = sandbox.create(SandboxSpec(base={base!r}), {backend!r})
shell = box.shell()
assert shell.run("(setsid sleep {number} &) >/dev/null 2>&1; sleep {number} & echo up").ok
print("ready", flush=True)
time.sleep(60)
"""


def abuse_19_killed_harness(subject: Subject) -> None:
    """SIGKILL to a process that holds a sandbox: once another has started one, no program of it is left."""
    subject.needs_host()
    number = _number(19)
    code = _HARNESS.format(base=subject.base, backend=subject.backend, number=number)
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    # A user who may not enter the interpreter's folder can still run it again through /proc.
    interpreter = sys.executable if os.access(sys.executable, os.X_OK) else "/proc/self/exe"
    with subprocess.Popen(
        [interpreter, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as harness:
        try:
            if harness.stdout is None or harness.stdout.readline() != b"ready\n":
                raise Broken("the harness could not make a sandbox")
            demand(_alive(subject, f"sleep {number}"), "its programs cannot be seen from here")
        finally:
            harness.kill()
    until = time.monotonic() + 20
    while _alive(subject, f"sleep {number}"):
        demand(time.monotonic() < until, "a program of the killed harness lives after 20 s")
        time.sleep(0.05)
        subject.create().close()  # a start sweeps what dead owners left

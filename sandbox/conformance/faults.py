"""Whose fault: whatever a program does to its sandbox, the harness gets a result, never a lost sandbox.

Each case takes away something that the harness itself needs for the next call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sandbox.base import Sandbox
from sandbox.conformance.report import Broken
from sandbox.conformance.subject import Subject, bash, demand, equal, python, succeeds
from sandbox.errors import SandboxError, SandboxLost, SandboxPathError

_EVERYTHING: dict[str, Callable[[Sandbox], object]] = {
    "exec": lambda box: box.exec(["echo", "x"]),
    "read": lambda box: box.read("absent"),
    "write": lambda box: box.write("new", b"x"),
    "shell": lambda box: _one_command(box),
    "snapshot": lambda box: _there_and_back(box),
    "fork": lambda box: _use_a_fork(box),
    "exec again": lambda box: box.exec(["echo", "x"]),
}


def _one_command(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        shell.run("echo x")


def _there_and_back(box: Sandbox) -> None:
    snapshot = box.snapshot()
    try:
        box.restore(snapshot)
    finally:
        snapshot.release()


def _use_a_fork(box: Sandbox) -> None:
    with box.fork() as child:
        child.exec(["echo", "x"])


def _no_fault(box: Sandbox, *, spare: tuple[str, ...] = ()) -> None:
    """Try every method: a result or a path that cannot be used, and nothing else."""
    for name, use in _EVERYTHING.items():
        if name in spare:
            continue
        try:
            use(box)
        except SandboxPathError:
            continue
        except (SandboxError, OSError, ValueError) as error:
            raise Broken(f"{name}: {type(error).__name__}: {error}"[:600]) from error


def spent_processes_are_no_fault(subject: Subject) -> None:
    """A bomb in the background of an open shell, while others want to start."""
    with subject.create() as box, contextlib.closing(box.shell()) as shell:
        shell.run("(while :; do sleep 60 & done) >/dev/null 2>&1 & sleep 0.5", timeout_s=20)
        for _ in range(3):
            result = box.exec(["echo", "x"])
            demand(result.reason in ("pids", "killed", "ok"), f"exec ended with {result.reason}")
        _no_fault(box, spare=("snapshot", "fork"))
        demand(shell.run("echo x", timeout_s=20).reason in ("ok", "pids", "killed", "timeout"), "the shell")


def spent_memory_is_no_fault(subject: Subject) -> None:
    """Held in the background of an open shell."""
    with subject.create() as box, contextlib.closing(box.shell()) as shell:
        hog = "x = []\nwhile len(x) < 90: x.append(bytearray(1 << 20))\nimport time; time.sleep(60)"
        shell.run(f"for i in 1 2; do python3 -I -S -c '{hog}' & done; sleep 0.5", timeout_s=20)
        for _ in range(3):
            demand(box.exec(["echo", "x"]).reason in ("oom", "killed", "ok"), "exec")
        _no_fault(box, spare=("snapshot", "fork"))
        demand(shell.run("echo x", timeout_s=20).reason in ("ok", "oom", "killed"), "the shell")


def memory_filled_by_files_is_no_fault(subject: Subject) -> None:
    """Where files count as memory, they stay when the program ends."""
    with subject.create(memory_bytes=32 << 20, workspace_bytes=64 << 20, file_bytes=64 << 20) as box:
        python(box, "f = open('big', 'wb')\nfor _ in range(60): f.write(bytes(1 << 20))")
        demand(box.exec(["echo", "x"]).reason in ("oom", "disk", "killed", "ok"), "exec")
        _no_fault(box)


_FILL = """
import os
try:
    for i in range(100000): open(f'f{i}', 'w').close()
except OSError: pass
with open('big', 'wb', buffering=0) as f:
    try:
        while True: f.write(bytes(1 << 16))
    except OSError: pass
"""


def full_workspace_is_no_fault(subject: Subject) -> None:
    """Not a byte and not a file more, over a snapshot, many times: programs still start and can make room."""
    subject.needs("workspace_size")
    with subject.create(files={"a": b"1"}, workspace_bytes=1 << 20) as box:
        for _ in range(4):
            box.snapshot().release()
            python(box, _FILL)
            _no_fault(box)
        for _ in range(3):  # what a snapshot holds may take a second attempt
            result = bash(box, "rm -rf ./* && head -c 500K /dev/zero > f")
        succeeds(result, "making room")


def full_disk_has_a_reason(subject: Subject) -> None:
    """A program that fails with the workspace full ends with `disk`; one that succeeds does not."""
    subject.needs("workspace_size")
    with subject.create() as box:
        result = bash(box, "head -c 20M /dev/zero > a; head -c 20M /dev/zero > b; head -c 20M /dev/zero > c")
        equal((result.exit_code, result.reason), (1, "disk"), "filling it")
        equal(bash(box, "exit 0").reason, "ok", "a program that succeeds")
        with contextlib.closing(box.shell()) as shell:
            equal(shell.run("echo x > d && cat d").reason, "disk", "a command")
            succeeds(shell.run("rm a b c; echo x > d"), "making room")


def full_tmp_is_no_fault(subject: Subject) -> None:
    """Filled by a background program of an open shell."""
    with subject.box() as box, contextlib.closing(box.shell()) as shell:
        shell.run("cat /dev/zero > /tmp/a 2>/dev/null; cat /dev/zero > /dev/shm/a 2>/dev/null", timeout_s=20)
        succeeds(box.exec(["true"]), "exec beside it")
        _no_fault(box, spare=("snapshot", "fork"))


def closed_workspace_is_no_fault(subject: Subject) -> None:
    """A workspace whose permissions a program took away: what follows ends with 126, or runs all the same."""
    with subject.create(files={"f": b"1"}) as box:
        succeeds(bash(box, "chmod 000 /workspace"), "chmod")
        result = box.exec(["echo", "x"])
        demand(result.reason == "ok" and result.exit_code in (0, 126), f"exec ended with {result}")
        if result.exit_code == 126:
            demand("Permission denied" in result.stderr.text, f"it says {result.stderr.text!r}")
        _no_fault(box)


def closed_folders_are_no_fault(subject: Subject) -> None:
    """Folders and files that even their owner cannot read, in snapshots too."""
    with subject.create() as box:
        succeeds(
            bash(box, "mkdir -p a/b c; echo x > a/b/f; echo x > g; chmod 000 a/b a g; chmod 111 c"), "chmod"
        )
        for _ in range(2):
            _no_fault(box)


def odd_process_names_are_no_fault(subject: Subject) -> None:
    """A name that is not UTF-8, while the harness looks at what it kills."""
    code = "import ctypes, time\nctypes.CDLL(None).prctl(15, b') \\xff\\xfe\\n')\ntime.sleep(60)"
    with subject.box() as box:
        equal(python(box, code, timeout_s=subject.deadline_s).reason, "timeout", "reason")
        with contextlib.closing(box.shell()) as shell:
            result = shell.run("exec -a $'\\xff' sleep 60", timeout_s=subject.deadline_s)
            equal(result.reason, "timeout", "reason in a shell")


def death_of_init_is_no_fault(subject: Subject) -> None:
    """Process 1 overwritten from inside, where the kernel lets a program do that."""
    code = """
import re
for line in open('/proc/1/maps'):
    start, end, mode = re.match(r'(\\w+)-(\\w+) (...)', line).groups()
    if 'x' in mode and 'vsys' not in line:
        with open('/proc/1/mem', 'r+b', buffering=0) as memory:
            memory.seek(int(start, 16))
            memory.write(b'\\xcc' * (int(end, 16) - int(start, 16)))
"""
    with subject.create() as box:
        result = python(box, code + "import os, time\nos.kill(1, 17)\ntime.sleep(0.3)")
        demand(result.reason in ("ok", "killed"), f"reason {result.reason}")
        demand(not result.ok, "it succeeded")
        _no_fault(box)
        succeeds(box.exec(["true"]), "the next program")


def odd_trees_are_no_fault(subject: Subject) -> None:
    """Deep, linked many times, with odd times, names, attributes and kinds of file; snapshots put them together."""
    code = """
import os, socket, stat
open('big', 'wb').write(b'x' * (1 << 20))
for i in range(40): os.link('big', f'link{i}')
os.utime('big', ns=(2**62, -2**62))
open(b'\\xff\\xfe\\n', 'w').close()
os.mkfifo('pipe')
socket.socket(socket.AF_UNIX).bind('socket')
os.symlink('x' * 4000, 'long')
for name, value in (('user.overlay.opaque', b'y'), ('user.overlay.redirect', b'/etc'), ('user.x', b'x' * 1000)):
    os.mkdir(name)
    try: os.setxattr(name, name, value)
    except OSError: pass
try: os.mknod('whiteout', stat.S_IFCHR)
except OSError: pass
for i in range(1200): os.mkdir('d'); os.chdir('d')
open('bottom', 'w').write('deep')
"""
    with subject.box() as box:
        succeeds(python(box, code), "making it")
        for _ in range(2):
            box.snapshot().release()
            _no_fault(box)
            box.write("more", b"x" * 600_000)
        with box.fork() as child:
            succeeds(bash(child, "cmp big link39"), "the links in a fork")
        walk = "import os\nfor i in range(1200): os.chdir('d')\nprint(open('bottom').read())"
        equal(python(box, walk).stdout.text, "deep\n", "the file at the bottom")


def forged_notices_are_no_fault(subject: Subject) -> None:
    """A program that reads its shell's script and writes to every descriptor that the shell has."""
    code = """
import glob, os, re
shell = os.getppid()
text = b''
for n in glob.glob(f'/proc/{shell}/fd/*'):
    try:
        fd = os.open(n, os.O_RDONLY | os.O_NONBLOCK)
        text += os.read(fd, 65536)
    except OSError: pass
for n in glob.glob(f'/proc/{shell}/fd/*'):
    for word in set(re.findall(rb'[0-9a-f]{16,}', text)) | {b'x'}:
        try:
            fd = os.open(n, os.O_WRONLY | os.O_NONBLOCK)
            os.write(fd, b'\\n' + word + b' ' + b'9' * 6000 + b'\\n' + word + b' 99999\\n\\xff\\n')
        except OSError: pass
"""
    with subject.box() as box:
        box.write("forge.py", code.encode())
        with contextlib.closing(box.shell()) as shell:
            for _ in range(2):
                demand(
                    shell.run("python3 forge.py", timeout_s=subject.deadline_s + 2).reason
                    in ("ok", "timeout", "killed"),
                    "the command",
                )
                demand(shell.run("echo x", timeout_s=20).reason == "ok", "the next command")


def lost_is_never_claimed_by_text(subject: Subject) -> None:
    """Programs that print what daemons and launchers say when they fail."""
    says = "bwrap: Can't mount proc; OCI runtime exec failed; Error response from daemon: No such container"
    with subject.box() as box:
        for code in (1, 125, 126, 127, 137):
            try:
                result = bash(box, f'echo "{says}" >&2; echo "{says}"; exit {code}')
            except SandboxLost as error:
                raise Broken(f"exit code {code}: SandboxLost: {error}") from error
            demand(says in result.stderr.text, f"exit code {code}: the text is gone")

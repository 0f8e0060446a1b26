"""Abuse cases 1 to 11: using up what there is. Each ends in a typed result, and the next program works."""

from __future__ import annotations

import json

from sandbox.archives import unpack
from sandbox.conformance.subject import LIMITS, Subject, bash, demand, equal, python, refused, succeeds
from sandbox.errors import SandboxPathError


def abuse_01_fork_bomb(subject: Subject) -> None:
    """Counted, and one that never ends."""
    subject.needs("processes")
    code = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        count += 1
except OSError: print(count)
"""
    with subject.box() as box:
        result = python(box, code)
        equal(result.reason, "pids", "reason")
        demand(10 <= int(result.stdout.text) <= LIMITS.processes, f"{result.stdout.text} forks")
        result = bash(box, "f() { f | f & }; f; sleep 60", timeout_s=1 + subject.deadline_s)
        demand(result.reason in ("timeout", "pids"), f"an endless bomb ends with {result.reason}")


def abuse_02_thread_bomb(subject: Subject) -> None:
    """Threads count as processes."""
    subject.needs("processes")
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
    with subject.box() as box:
        result = python(box, code)
        equal(result.reason, "pids", "reason")
        demand(10 <= int(result.stdout.text) <= LIMITS.processes, f"{result.stdout.text} threads")


def abuse_03_memory_bomb(subject: Subject) -> None:
    """In one process: killed where there is a total, refused memory otherwise."""
    with subject.box() as box:
        result = python(box, "x = []\nwhile True: x.append(bytearray(1 << 20))")
        if "memory_total" in subject.report.enforced:
            equal((result.reason, result.exit_code), ("oom", None), "result")
        else:
            equal(result.exit_code, 1, "exit code")
            demand("MemoryError" in result.stderr.text, f"it says {result.stderr.text!r}")


def abuse_04_memory_bomb_of_children(subject: Subject) -> None:
    """Eight of 20 MiB each."""
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


_FILL = """
import os
for place, limit in (("/tmp", 4), ("/dev/shm", 16), ("/workspace", 4), ("/dev", 0), ("/", 0), ("/etc", 0),
                     ("/usr", 0), ("/var", 0), ("/run", 0), ("/home", 0)):
    written = 0
    if not os.path.isdir(place): continue
    try:
        for number in range(20):
            with open(f"{place}/fill{number}", "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(bytes(1 << 16))
    except OSError as error:
        print(place, written <= limit << 20, error.errno)
    else:
        print(place, "unlimited", 0)
    for number in range(20):
        try: os.unlink(f"{place}/fill{number}")
        except OSError: pass
"""


def abuse_05_filling_every_place(subject: Subject) -> None:
    """Bounded where one may write, refused elsewhere."""
    subject.needs("tmp_size", "read_only_root")
    with subject.box() as box:
        lines = python(box, _FILL).stdout.text.splitlines()
        if "workspace_size" not in subject.report.enforced:
            lines = [line for line in lines if not line.startswith("/workspace ")]
        demand(len(lines) >= 6, f"only {lines}")
        for line in lines:
            _, bounded, number = line.split()
            demand(bounded == "True" and number in ("28", "30", "13"), line)  # ENOSPC, EROFS, EACCES


def abuse_06_filling_the_workspace(subject: Subject) -> None:
    """Bytes, a sparse file, a great many files, deep folders."""
    subject.needs("workspace_size")
    with subject.box() as box:
        demand(not python(box, "open('big', 'wb').truncate(1 << 40)").ok, "a sparse file of 1 TiB was made")
        result = bash(box, "for i in 1 2 3 4 5 6; do head -c 1M /dev/zero > f$i || exit 1; done")
        equal((result.exit_code, result.reason), (1, "disk"), "filling it")
        succeeds(bash(box, "rm f*"), "making room")
        many = python(box, "for i in range(100000): open(str(i), 'w').close()")
        demand("No space left" in many.stderr.text, f"100,000 files: {many.stderr.text!r}")
        succeeds(bash(box, "find . -mindepth 1 -delete"), "making room")
        succeeds(python(box, "import os\nfor i in range(1500): os.mkdir('d'); os.chdir('d')"), "deep folders")
        with box.fork() as child:
            equal(child.exec(["ls"]).stdout.text, "d\n", "the fork's files")


_ENDLESS = {
    "lines": "b'line\\n' * 4096",
    "one line without an end": "b'x' * 65536",
    "invalid UTF-8": "b'\\xff\\xfe' * 32768",
    "NULs": "bytes(65536)",
    "ANSI": "b'\\x1b[2J\\x1b]0;title\\x07' * 4096",
}


def abuse_07_infinite_stdout(subject: Subject) -> None:
    """Of five kinds."""
    with subject.box() as box:
        for kind, data in _ENDLESS.items():
            result = python(box, f"import sys\nwhile True: sys.stdout.buffer.write({data})")
            equal((result.reason, result.exit_code), ("output", None), kind)
            output = result.stdout
            demand(output.total_bytes > LIMITS.kill_output_bytes, f"{kind}: {output.total_bytes} bytes")
            equal(len(output.head) + len(output.tail), LIMITS.max_output_bytes, f"{kind}: bytes kept")
            demand("bytes cut" in output.text, f"{kind}: the cut is not marked")


def abuse_08_infinite_stderr(subject: Subject) -> None:
    """With a quiet standard output."""
    with subject.box() as box:
        result = python(box, "import sys\nwhile True: sys.stderr.buffer.write(b'e' * 65536)")
        equal((result.reason, result.stdout.total_bytes), ("output", 0), "result")
        demand(result.stderr.total_bytes > LIMITS.kill_output_bytes, f"{result.stderr.total_bytes} bytes")


def abuse_09_descriptor_exhaustion(subject: Subject) -> None:
    """At the limit, less those that are open."""
    code = (
        "x = []\ntry:\n  while True: x.append(open('/dev/null'))\nexcept OSError as e: print(len(x), e.errno)"
    )
    with subject.box() as box:
        equal(python(box, code).stdout.text, f"{LIMITS.open_files - 3} 24\n", "descriptors and errno")


def abuse_10_spinning_on_all_cores(subject: Subject) -> None:
    """Ends at the deadline."""
    with subject.box() as box:
        script = "for i in 1 2 3 4; do (while :; do :; done) & done; wait"
        equal(bash(box, script, timeout_s=0.5 + subject.deadline_s).reason, "timeout", "reason")


_BOMBS = """
import gzip, tarfile
def header(name, size, kind=tarfile.REGTYPE):
    made = tarfile.TarInfo(name)
    made.size, made.type = size, kind
    return made.tobuf()
bombs = {
    "big": header("zeros", 7 << 20) + bytes(7 << 20),
    "many": header("empty", 0) * 1001,
    "digits": header("digits", 1 << 20, tarfile.XHDTYPE) + b"1" * (1 << 20),
    "nested": header("long", 0, tarfile.GNUTYPE_LONGNAME) * 4000,
}
for name, data in bombs.items():
    open(name, "wb").write(gzip.compress(data))
"""


def abuse_11_bombs_in_returned_files(subject: Subject) -> None:
    """A file larger than the cap is refused before it is read, an archive before it unfolds to more than its own cap or
    takes the harness's time; depth of JSON is the reader's.
    """
    with subject.box() as box:
        succeeds(python(box, "open('sparse', 'wb').truncate(7 << 20)"), "a sparse file")
        with refused(SandboxPathError, "reading 7 MiB of nothing", saying="larger"):
            box.read("sparse", max_bytes=1 << 20)
        succeeds(python(box, "open('deep.json', 'w').write('[' * 100000)"), "deep JSON")
        with refused((ValueError, RecursionError), "parsing it"):
            json.loads(box.read("deep.json"))
        succeeds(python(box, _BOMBS), "packing bombs")
        for name, why in (("big", "max_bytes"), ("many", "max_files"), ("digits", "header"), ("nested", "")):
            with refused(SandboxPathError, f"unpacking {name}", saying=why):
                unpack(box, box.read(name), into="in", max_bytes=1 << 20, max_files=1000)

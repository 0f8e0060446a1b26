"""No program can make the sandbox raise a fault: what it breaks is a result, or an error about its own files."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from sandbox.base import Sandbox, Shell
from sandbox.conformance.report import Broken
from sandbox.conformance.subject import Subject, bash, true
from sandbox.errors import SandboxBusy, SandboxError, SandboxPathError
from sandbox.types import ExecResult

_FORKS = """/usr/bin/python3 -I -S -c '
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(61.77)
            os._exit(0)
except OSError:
    pass
'"""
_MEMORY = "/usr/bin/python3 -I -S -c 'x = bytearray(88 << 20); import time; time.sleep(60)' &"
_FILL = (
    "head -c 9000000 /dev/zero > full 2>/dev/null; head -c 9000000 /dev/zero > /tmp/full 2>/dev/null; true"
)
_INODES = "/usr/bin/python3 -I -S -c 'for i in range(2500): open(str(i), \"w\").close()' 2>/dev/null; true"
_DEEP = '/usr/bin/python3 -I -S -c \'import os\nfor i in range(1500): os.mkdir("d"); os.chdir("d")\'; true'


def _uses(box: Sandbox) -> dict[str, Callable[[], object]]:
    def shell() -> ExecResult:
        with contextlib.closing(box.shell()) as opened:
            return opened.run("true", timeout_s=5)

    def fork() -> ExecResult:
        with box.fork() as child:
            return child.exec(["/bin/true"], timeout_s=5)

    def snapshot() -> None:
        taken = box.snapshot()
        try:
            box.restore(taken)
        finally:
            taken.release()

    return {
        "exec": lambda: box.exec(["/bin/true"], timeout_s=5),
        "read": lambda: box.read("f"),
        "write": lambda: box.write("g/h", b"x"),
        "shell": shell,
        "snapshot": snapshot,
        "fork": fork,
    }


def _try_all(box: Sandbox, what: str) -> None:
    """Every operation returns, or raises what names the program's own doing."""
    for name, use in _uses(box).items():
        try:
            use()
        except (SandboxPathError, SandboxBusy):
            continue
        except SandboxError as error:
            raise Broken(f"{what} made {name} raise {type(error).__name__}: {error}") from error


def _abused(subject: Subject, script: str) -> None:
    with subject.create(files={"f": b"f"}) as box:
        bash(box, script, timeout_s=10)
        for _ in range(2):  # the second time over what the first one stacked
            _try_all(box, "a program that ended")
    with subject.create(files={"f": b"f"}) as box, contextlib.closing(box.shell()) as shell:
        shell.run(script, timeout_s=10)
        time.sleep(0.2)
        _try_all(box, "a shell that is open")
        _still_answers(shell)


def _still_answers(shell: Shell) -> None:
    for _ in range(3):  # a command may hit the limit that the one before it used up; the shell is then new
        if shell.run("echo fine", timeout_s=5).stdout.text == "fine\n":
            return
    raise Broken("the shell does not answer three commands after the abuse")


def fault_processes_used_up(subject: Subject) -> None:
    """All processes taken."""
    _abused(subject, _FORKS)


def fault_memory_used_up(subject: Subject) -> None:
    """Nearly all memory taken."""
    _abused(subject, _MEMORY)


def fault_disk_used_up(subject: Subject) -> None:
    """Workspace and `/tmp` full."""
    _abused(subject, _FILL)


def fault_inodes_used_up(subject: Subject) -> None:
    """No file can be made any more."""
    _abused(subject, _INODES)


def fault_deep_folders(subject: Subject) -> None:
    """1,500 folders in one another."""
    _abused(subject, _DEEP)


def fault_locked_workspace(subject: Subject) -> None:
    """All permissions taken away from the workspace and what is in it."""
    _abused(subject, "mkdir -p g; chmod 000 g f; chmod 000 /workspace; true")


def fault_strange_files(subject: Subject) -> None:
    """Sockets, pipes, links that lead in circles, names that are no text, folders where files were."""
    script = r"""
    rm f; mkdir f; ln -s loop loop; ln -s . self; mkfifo pipe; touch $'\xff\xfe'; mkdir g; touch g/h; rm -r g; ln -s / g
    /usr/bin/python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
    """
    _abused(subject, script)


def fault_killed_init(subject: Subject) -> None:
    """Killing everything that can be seen, pid 1 first."""
    _abused(subject, "kill -9 1; kill -9 -1; true")


def fault_stopped_everything(subject: Subject) -> None:
    """Stopping everything that can be seen."""
    with subject.create() as box, contextlib.closing(box.shell()) as shell:
        true(
            shell.run("kill -STOP -1; kill -STOP $$", timeout_s=1).reason == "timeout",
            "a stopped shell times out",
        )
        _still_answers(shell)


def fault_closed_streams(subject: Subject) -> None:
    """A program and a shell that close all their descriptors."""
    _abused(subject, 'for fd in $(ls /proc/$$/fd); do eval "exec $fd>&-"; done 2>/dev/null; true')


CASES = (
    fault_processes_used_up,
    fault_memory_used_up,
    fault_disk_used_up,
    fault_inodes_used_up,
    fault_deep_folders,
    fault_locked_workspace,
    fault_strange_files,
    fault_killed_init,
    fault_stopped_everything,
    fault_closed_streams,
)

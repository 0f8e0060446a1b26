"""What a shell promises: state between commands, and no command that can fake the end of another."""

from __future__ import annotations

import contextlib
import threading
import time

from sandbox.base import Shell
from sandbox.conformance.subject import Subject, equal, raises, true
from sandbox.errors import SandboxClosed


def _out(shell: Shell, command: str) -> str:
    return shell.run(command).stdout.text


def state_survives(subject: Subject) -> None:
    """Directory, variables, arrays and functions."""
    with subject.shell() as (_, shell):
        true(
            shell.run("mkdir -p a/b && cd a/b; x='1 2'; declare -a l=(p q); f() { echo \"f:$1\"; }").ok,
            "setup",
        )
        equal(_out(shell, 'pwd; echo "$x" "${l[1]}"; f z'), "/workspace/a/b\n1 2 q\nf:z\n", "state")


def streams_and_exit_codes(subject: Subject) -> None:
    """Of each command, apart."""
    with subject.shell() as (_, shell):
        result = shell.run("echo out; echo err >&2; (exit 5)")
        equal((result.exit_code, result.reason), (5, "ok"), "status")
        equal((result.stdout.text, result.stderr.text), ("out\n", "err\n"), "streams")
        equal(shell.run("(kill -KILL $BASHPID)").exit_code, -9, "a signal")
        equal(shell.run("").exit_code, 0, "an empty command")


def broken_commands(subject: Subject) -> None:
    """Never put the shell out of step."""
    with subject.shell() as (_, shell):
        shell.run("y=kept")
        for command in ("if", "echo 'open", "(", "cat <<X\nline", "break", "continue", "return 3", "}"):
            equal(shell.run(command, timeout_s=5).reason, "ok", f"reason of {command!r}")
            equal(_out(shell, "echo next $y").split()[:1], ["next"], f"the command after {command!r}")


def commands_of_any_text(subject: Subject) -> None:
    """Quotes, here-documents, long lines; a NUL byte is refused."""
    with subject.shell() as (_, shell):
        said = _out(shell, "cat <<'X'\nit's \"$x\" `y` \\ é\nX\necho $((1+1)) # 'comment")
        equal(said, 'it\'s "$x" `y` \\ é\n2\n', "output")
        equal(len(shell.run("echo " + "x" * 50_000).stdout.head), 1000, "head of a long line")
        raises(ValueError, "a NUL byte", lambda: shell.run("a\0b"))


def commands_have_no_input(subject: Subject) -> None:
    """And read its end at once."""
    with subject.shell() as (_, shell):
        equal(_out(shell, "cat; read x; echo $?"), "1\n", "output")


def timeout_restarts(subject: Subject) -> None:
    """Output stays, state goes, and nothing of the old shell runs on."""
    with subject.shell() as (_, shell):
        shell.run("x=lost; echo file > kept; sleep 61.71 &")
        result = shell.run("echo begun; sleep 60", timeout_s=0.7)
        equal(
            (result.exit_code, result.reason, result.stdout.text), (None, "timeout", "begun\n"), "the result"
        )
        found = _out(shell, "echo [$x]; cat kept; grep -l 61[.]71 /proc/[0-9]*/cmdline 2>/dev/null")
        equal(found, "[]\nfile\n", "state, file and leftovers")


def exit_gives_a_new_shell(subject: Subject) -> None:
    """The exit code is the result, and the next command has a new shell."""
    with subject.shell() as (_, shell):
        result = shell.run("x=1; echo bye; exit 7")
        equal((result.exit_code, result.reason, result.stdout.text), (7, "ok", "bye\n"), "exit")
        equal(_out(shell, "echo [$x]"), "[]\n", "the next command")
        equal(shell.run("set -e; false").exit_code, 1, "set -e")
        equal(shell.run("exec /bin/echo replaced").stdout.text, "replaced\n", "exec")
        equal(shell.run("kill -KILL $$").exit_code, -9, "a shell that kills itself")
        equal(_out(shell, "echo again"), "again\n", "the next command")


def flood_is_killed(subject: Subject) -> None:
    """And the next command works."""
    with subject.shell() as (_, shell):
        equal(shell.run("yes").reason, "output", "reason")
        equal(_out(shell, "echo fine"), "fine\n", "the next command")


def background_output(subject: Subject) -> None:
    """Does not block the next command."""
    with subject.shell() as (_, shell):
        for command in ("yes &", "echo here; kill %1"):
            true(shell.run(command, timeout_s=10).reason in ("ok", "output"), f"{command!r} must end")
            time.sleep(0.05)


def totals_hold(subject: Subject) -> None:
    """Memory and processes are bounded in a shell as elsewhere."""
    subject.needs("memory_total", "processes")
    with subject.shell() as (_, shell):
        equal(shell.run("/usr/bin/python3 -I -S -c 'x = bytearray(200 << 20)'").reason, "oom", "memory")
        forks = "import os, time\nfor _ in range(60):\n  if os.fork() == 0: time.sleep(60)"
        equal(shell.run(f"/usr/bin/python3 -I -S -c '{forks}' 2>/dev/null").reason, "pids", "processes")


def two_shells(subject: Subject) -> None:
    """Share the files of the workspace, and no state."""
    with subject.shell() as (box, shell), contextlib.closing(box.shell()) as other:
        shell.run("x=1; echo shared > f; echo private > /tmp/f")
        equal(_out(other, "echo [$x]; cat f; :"), "[]\nshared\n", "the other shell")
        box.write("g", b"from the host")
        equal(_out(shell, "cat g"), "from the host", "a file of the host")
        equal(box.exec(["/bin/cat", "f"]).stdout.text, "shared\n", "a program beside the shells")


def closed_is_closed(subject: Subject) -> None:
    """Twice is once, and what follows is refused."""
    with subject.box() as box:
        shell = box.shell()
        shell.close()
        shell.close()
        raises(SandboxClosed, "a command after close", lambda: shell.run("true"))


def closing_the_sandbox_ends_a_command(subject: Subject) -> None:
    """With reason `killed`."""
    box = subject.create()
    shell = box.shell()
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(shell.run("sleep 60").reason))
    thread.start()
    time.sleep(0.4)
    box.close()
    thread.join(30)
    equal(reasons, ["killed"], "reason")
    raises(SandboxClosed, "a command after close", lambda: shell.run("true"))


def outlives_the_thread_that_opened_it(subject: Subject) -> None:
    """Threads come and go."""
    with subject.box() as box:
        shells: list[Shell] = []
        thread = threading.Thread(target=lambda: shells.append(box.shell()))
        thread.start()
        thread.join()
        time.sleep(0.1)
        with contextlib.closing(shells[0]) as shell:
            equal(_out(shell, "echo alive"), "alive\n", "output")


CASES = (
    state_survives,
    streams_and_exit_codes,
    broken_commands,
    commands_of_any_text,
    commands_have_no_input,
    timeout_restarts,
    exit_gives_a_new_shell,
    flood_is_killed,
    background_output,
    totals_hold,
    two_shells,
    closed_is_closed,
    closing_the_sandbox_ends_a_command,
    outlives_the_thread_that_opened_it,
)

"""The stateful shell."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from sandbox.base import Sandbox, Shell
from sandbox.conformance.subject import Subject, demand, equal, refused, succeeds
from sandbox.errors import SandboxClosed


@contextlib.contextmanager
def _open(subject: Subject) -> Iterator[tuple[Sandbox, Shell]]:
    with subject.box() as box, contextlib.closing(box.shell()) as shell:
        yield box, shell


def state_survives(subject: Subject) -> None:
    """Directory, variables, arrays and functions."""
    with _open(subject) as (_, shell):
        succeeds(shell.run("mkdir -p a/b && cd a/b; x='1 2'; list=(p q); f() { echo \"f:$1\"; }"), "state")
        shown = shell.run('pwd; echo "$x" "${list[1]}"; f z').stdout.text
        equal(shown, "/workspace/a/b\n1 2 q\nf:z\n", "state")


def streams_and_exit_codes(subject: Subject) -> None:
    """Of each command on its own."""
    with _open(subject) as (_, shell):
        result = shell.run("echo out; echo err >&2; (exit 5)")
        equal((result.exit_code, result.reason), (5, "ok"), "result")
        equal((result.stdout.text, result.stderr.text), ("out\n", "err\n"), "streams")
        equal(shell.run("(kill -KILL $BASHPID)").exit_code, -9, "death by signal")
        equal(shell.run("").exit_code, 0, "nothing")
        equal(shell.run("false").exit_code, 1, "false")


def broken_commands_do_not_desynchronise(subject: Subject) -> None:
    """What does not parse, and what would leave a loop or a function."""
    with _open(subject) as (_, shell):
        shell.run("y=kept")
        for command in ("if", "echo 'open", "(", "cat <<X\nline", "break", "continue", "return 3", "}", ";;"):
            equal(shell.run(command, timeout_s=20).reason, "ok", f"reason of {command!r}")
            demand(shell.run("echo next").stdout.text == "next\n", f"the command after {command!r} is lost")
        equal(shell.run("echo $y").stdout.text, "kept\n", "state after them")


def commands_of_any_text(subject: Subject) -> None:
    """Quotes, here-documents, comments, several lines, very long ones."""
    with _open(subject) as (_, shell):
        text = "cat <<'X'\nit's \"$x\" `y` \\ é\nX\necho $((1+1)) # 'comment"
        equal(shell.run(text).stdout.text, 'it\'s "$x" `y` \\ é\n2\n', "output")
        equal(shell.run("echo " + "x" * 300_000).stdout.total_bytes, 300_001, "bytes of a long command")
        for command in ("a\0b", "echo \ud800"):
            with refused(ValueError, f"command {command!r}"):
                shell.run(command)


def commands_have_no_input(subject: Subject) -> None:
    """And no descriptor of the harness."""
    with _open(subject) as (_, shell):
        equal(shell.run("cat; read x; echo $?").stdout.text, "1\n", "reading")
        listed = shell.run("python3 -I -S -c 'import os; print(*sorted(os.listdir(\"/proc/self/fd\")))'")
        equal(listed.stdout.text, "0 1 2 3\n", "descriptors")


def timeout_restarts_the_shell(subject: Subject) -> None:
    """Partial output is kept, state and background jobs are lost, files stay."""
    with _open(subject) as (_, shell):
        shell.run("x=lost; echo file > kept; (while :; do echo x >> ticks; sleep 0.02; done) &")
        result = shell.run("echo begun; sleep 60", timeout_s=subject.deadline_s)
        equal((result.exit_code, result.reason, result.stdout.text), (None, "timeout", "begun\n"), "result")
        shown = shell.run(
            "echo [$x]; cat kept; a=$(wc -c < ticks); sleep 0.2; echo $(($(wc -c < ticks) - a))"
        )
        equal(shown.stdout.text, "[]\nfile\n0\n", "after the restart")


def exit_gives_its_code(subject: Subject) -> None:
    """And the next command starts in a fresh shell."""
    with _open(subject) as (_, shell):
        result = shell.run("x=1; echo bye; exit 7")
        equal((result.exit_code, result.reason, result.stdout.text), (7, "ok", "bye\n"), "exit 7")
        equal(shell.run("echo [$x]").stdout.text, "[]\n", "a fresh shell")
        equal(shell.run("set -e; false").exit_code, 1, "set -e")
        equal(shell.run("exec echo replaced").stdout.text, "replaced\n", "exec")
        equal(shell.run("kill -KILL $$").exit_code, -9, "killing the shell")
        equal(shell.run("echo again").stdout.text, "again\n", "a fresh shell")


def flood_in_a_shell_is_killed(subject: Subject) -> None:
    """And the shell serves on."""
    with _open(subject) as (_, shell):
        equal(shell.run("yes").reason, "output", "reason")
        equal(shell.run("echo fine").stdout.text, "fine\n", "the next command")


def background_output_does_not_block(subject: Subject) -> None:
    """Of a job that writes without end."""
    with _open(subject) as (_, shell):
        demand(shell.run("yes &").reason in ("ok", "output"), "starting it")
        time.sleep(0.05)
        demand(shell.run("echo here; kill %1", timeout_s=20).reason in ("ok", "output"), "the next command")


def background_jobs_live_on(subject: Subject) -> None:
    """Between commands, until the shell is closed."""
    with subject.box() as box:
        shell = box.shell()
        shell.run("(while :; do echo x >> ticks; sleep 0.02; done) >/dev/null 2>&1 &")
        before = len(box.read("ticks")) if shell.run("sleep 0.1").ok else 0
        time.sleep(0.3)
        demand(len(box.read("ticks")) > before, "the job does not run between commands")
        shell.close()
        before = len(box.read("ticks"))
        time.sleep(0.2)
        equal(len(box.read("ticks")), before, "what the job writes after the shell was closed")


def totals_hold_in_a_shell(subject: Subject) -> None:
    """Memory and processes."""
    subject.needs("memory_total", "processes")
    with _open(subject) as (_, shell):
        equal(shell.run("python3 -I -S -c 'x = bytearray(200 << 20)'").reason, "oom", "memory")
        code = 'import os\nfor _ in range(60):\n  if os.fork() == 0: __import__("time").sleep(60)'
        equal(shell.run(f"python3 -I -S -c '{code}'").reason, "pids", "processes")


def two_shells_share_only_files(subject: Subject) -> None:
    """With the harness and with `exec`, too."""
    with _open(subject) as (box, shell), contextlib.closing(box.shell()) as other:
        shell.run("x=1; echo shared > f")
        equal(other.run("echo [$x]; cat f").stdout.text, "[]\nshared\n", "the other shell")
        box.write("g", b"from the host")
        equal(shell.run("cat g").stdout.text, "from the host", "a file written by the harness")
        equal(box.exec(["cat", "f"]).stdout.text, "shared\n", "exec beside the shells")


def closing_a_shell_twice(subject: Subject) -> None:
    """Is allowed; running a command then is not."""
    with subject.box() as box:
        shell = box.shell()
        shell.close()
        shell.close()
        with refused(SandboxClosed, "run after close"):
            shell.run("true")


def closing_the_sandbox_ends_a_running_command(subject: Subject) -> None:
    """With reason `killed`."""
    box = subject.create()
    shell = box.shell()
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(shell.run("sleep 60").reason))
    thread.start()
    time.sleep(0.3 + 2 * subject.launch_s)
    box.close()
    thread.join(30)
    equal(reasons, ["killed"], "reasons")


def shell_outlives_the_thread_that_opened_it(subject: Subject) -> None:
    """Threads may serve one episode in turn."""
    with subject.box() as box:
        shells: list[Shell] = []
        thread = threading.Thread(target=lambda: shells.append(box.shell()))
        thread.start()
        thread.join()
        time.sleep(0.1)
        equal(shells[0].run("echo alive").stdout.text, "alive\n", "output")
        shells[0].close()

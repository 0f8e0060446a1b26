"""Programs: exit codes, environment, working directory, arguments, several at once."""

from __future__ import annotations

import os
import threading

from sandbox.conformance.subject import Subject, bash, demand, equal, python, refused, succeeds
from sandbox.errors import SandboxPathError

_SECRET = "AGENT_RL_CONFORMANCE_SECRET"


def streams_and_exit_code(subject: Subject) -> None:
    """Both streams apart, and the exit code."""
    with subject.box() as box:
        result = bash(box, "echo out; echo err >&2; exit 3")
        equal((result.exit_code, result.reason, result.ok), (3, "ok", False), "result")
        equal((result.stdout.text, result.stderr.text), ("out\n", "err\n"), "streams")


def exit_by_signal_is_negative(subject: Subject) -> None:
    """A death by signal n is -n, and no time-out."""
    with subject.box() as box:
        for number in (6, 9, 11, 15):
            result = bash(box, f"kill -{number} $$")
            equal((result.exit_code, result.reason), (-number, "ok"), f"signal {number}")


def absent_program_is_127(subject: Subject) -> None:
    """As in a shell, also by path."""
    with subject.box() as box:
        for name in ("absent-program", "/usr/bin/absent-program", "./absent"):
            result = box.exec([name])
            equal((result.exit_code, result.reason), (127, "ok"), name)


def unrunnable_program_is_126(subject: Subject) -> None:
    """A file without permission, and a folder."""
    with subject.box(files={"text": b"not a program", "d/f": b""}) as box:
        for name in ("/workspace/text", "/workspace/d"):
            result = box.exec([name])
            equal((result.exit_code, result.reason), (126, "ok"), name)


def environment_is_extended(subject: Subject) -> None:
    """By the specification and by the call, which wins."""
    with subject.box(env={"MINE": "spec", "KEPT": "1"}) as box:
        result = bash(box, 'echo "$MINE|$KEPT|$ODD"', env={"MINE": "a=b c", "ODD": "ä\n'\""})
        equal(result.stdout.text, "a=b c|1|ä\n'\"\n", "variables")
        equal(bash(box, 'echo "$MINE"').stdout.text, "spec\n", "the call's variables last for the call")


def environment_is_clean(subject: Subject) -> None:
    """Nothing of the harness's environment, and what programs rely on."""
    os.environ[_SECRET] = "s3cret"
    try:
        with subject.box() as box:
            lines = box.exec(["env"]).stdout.text.splitlines()
    finally:
        del os.environ[_SECRET]
    shown = dict(line.partition("=")[::2] for line in lines)
    equal(sorted({_SECRET, "SHELL", "LOGNAME", "SSH_CLIENT", "PYTHONPATH"} & shown.keys()), [], "leaked")
    equal(shown.get("HOME"), "/workspace", "HOME")
    demand("/usr/bin" in shown.get("PATH", ""), f"PATH is {shown.get('PATH')!r}")
    equal(shown.get("TZ"), "UTC", "TZ")
    demand("UTF-8" in shown.get("LANG", ""), f"LANG is {shown.get('LANG')!r}")


def malformed_environment_is_refused(subject: Subject) -> None:
    """Names and values that no environment can hold."""
    with subject.box() as box:
        for env in ({"": "x"}, {"A=B": "x"}, {"A": "x\0y"}, {"A": "\ud800"}):
            with refused(ValueError, f"env {env!r}"):
                box.exec(["true"], env=env)


def umask_of_the_harness_does_not_leak(subject: Subject) -> None:
    """Files made inside are 644 whatever the harness's umask is."""
    before = os.umask(0o077)
    try:
        with subject.box() as box:
            equal(bash(box, "umask").stdout.text, "0022\n", "umask")
    finally:
        os.umask(before)


def user_is_unprivileged(subject: Subject) -> None:
    """Inside, one is not root, and owns the workspace."""
    with subject.box() as box:
        said = bash(box, "test $(id -u) -gt 0 && test -w . && test -O . && echo yes")
        equal(said.stdout.text, "yes\n", "an ordinary user who owns the workspace")


def files_are_listed_with_what_they_are(subject: Subject) -> None:
    """`ls -l` and `stat`, which agents live by."""
    with subject.box(files={"d/f": b"12345"}) as box:
        said = succeeds(bash(box, "stat -c %s d/f; ls -l d | tail -1 | cut -c1-10"), "listing")
        equal(said.stdout.text, "5\n-rw-r--r--\n", "size and mode")


def working_directory(subject: Subject) -> None:
    """The workspace, or a folder of it."""
    with subject.box(files={"a/b/c.txt": b""}) as box:
        for cwd, shown in ((".", ""), ("a/b", "/a/b"), ("/workspace/a", "/a"), ("a/./b/", "/a/b")):
            equal(bash(box, "pwd", cwd=cwd).stdout.text, f"/workspace{shown}\n", f"cwd {cwd!r}")


def working_directory_outside_is_refused(subject: Subject) -> None:
    """By `..`, and by an absolute path."""
    with subject.box() as box:
        for cwd in ("..", "a/../..", "/etc", "/workspacex", "a\0b"):
            with refused(ValueError, f"cwd {cwd!r}"):
                box.exec(["true"], cwd=cwd)


def absent_working_directory_is_refused(subject: Subject) -> None:
    """With the path in the message; a file is no folder."""
    with subject.box(files={"file": b""}) as box:
        for cwd in ("absent", "file"):
            with refused(SandboxPathError, f"cwd {cwd!r}", saying=cwd):
                box.exec(["true"], cwd=cwd)


def malformed_argv_is_refused(subject: Subject) -> None:
    """Empty, with NUL bytes, or not encodable."""
    with subject.box() as box:
        for argv in ([], [""], ["a\0b"], ["echo", "\ud83d"]):
            with refused(ValueError, f"argv {argv!r}", saying="argv"):
                box.exec(argv)


def arguments_of_100_kilobytes(subject: Subject) -> None:
    """And odd ones, come through whole."""
    with subject.box(max_output_bytes=300_000) as box:
        words = ["x" * 100_000, "", "a b", "*", "$HOME", "'", '"', "\\", "\n", "-n", "ä"]
        result = python(box, "import sys; print(sys.argv[1:])")
        equal(result.stdout.text, "[]\n", "no arguments")
        result = box.exec(["python3", "-c", "import sys; print(ascii(sys.argv[1:]))", *words])
        equal(result.stdout.text, f"{words!a}\n", "arguments")


def too_long_argv_is_a_clear_error(subject: Subject) -> None:
    """One argument of a mebibyte, and very many: the message says what to do instead."""
    with subject.box() as box:
        for argv in (["true", "x" * 2**20], ["true", *["x"] * 50_000]):
            with refused(ValueError, f"argv of {len(argv)} words", saying="stdin or a file"):
                box.exec(argv)


def usage_is_measured(subject: Subject) -> None:
    """Wall-clock time, and processor time where the program used some."""
    with subject.box() as box:
        usage = python(box, "for i in range(2_000_000): pass\nimport time; time.sleep(0.2)").usage
        demand(0.2 <= usage.wall_s < 30, f"wall_s is {usage.wall_s}")
        demand(0 < usage.cpu_s < 30, f"cpu_s is {usage.cpu_s}")


def memory_peak_is_measured(subject: Subject) -> None:
    """Where there is a memory total."""
    subject.needs("memory_total")
    with subject.box() as box:
        peak = python(box, "x = bytearray(30 << 20)").usage.max_rss_bytes
        demand(30 << 20 < peak < 96 << 20, f"the peak of a program that takes 30 MiB is {peak} bytes")


def several_sandboxes_at_once(subject: Subject) -> None:
    """Six threads, each with its own."""
    wrong: list[str] = []

    def work(number: int) -> None:
        try:
            with subject.create() as box:
                for turn in range(3):
                    box.write("n", str(number + turn).encode())
                    equal(box.exec(["cat", "n"]).stdout.text, str(number + turn), f"thread {number}")
        except BaseException as error:  # noqa: BLE001 - reported by the demand below
            wrong.append(f"{type(error).__name__}: {error}")

    _together([threading.Thread(target=work, args=(number,)) for number in range(6)])
    equal(wrong, [], "errors")


def several_threads_in_one_sandbox(subject: Subject) -> None:
    """Calls may wait for one another, but each gets its own result."""
    with subject.box() as box:
        found: dict[int, str] = {}

        def work(number: int) -> None:
            found[number] = box.exec(["echo", str(number)]).stdout.text

        _together([threading.Thread(target=work, args=(number,)) for number in range(5)])
        equal(found, {number: f"{number}\n" for number in range(5)}, "results")


def tmp_is_writable_and_separate(subject: Subject) -> None:
    """`/tmp` and `/dev/shm` take files that are not the workspace's."""
    with subject.box() as box:
        succeeds(bash(box, "echo x > /tmp/f && echo x > /dev/shm/f && test ! -e f"), "writing to /tmp")


def _together(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

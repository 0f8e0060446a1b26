"""What `exec` promises: streams, status, environment, deadlines, and errors that say what was wrong."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from functools import partial

from sandbox.base import Sandbox
from sandbox.conformance.subject import SMALL, Subject, bash, equal, python, raises, true
from sandbox.errors import SandboxClosed, SandboxPathError
from sandbox.types import ExecResult


def streams_and_exit_code(subject: Subject) -> None:
    """Both streams apart, the exit code, and a usage that was measured."""
    with subject.box() as box:
        result = bash(box, "echo out; echo err >&2; exit 3")
        equal((result.exit_code, result.reason, result.ok), (3, "ok", False), "status")
        equal((result.stdout.text, result.stderr.text), ("out\n", "err\n"), "streams")
        true(result.usage.wall_s > 0, f"wall time must be measured, but is {result.usage.wall_s}")


def stdin_binary(subject: Subject) -> None:
    """All 256 bytes, unchanged."""
    with subject.box() as box:
        equal(box.exec(["/bin/cat"], stdin=bytes(range(256))).stdout.head, bytes(range(256)), "echoed input")


def stdin_large(subject: Subject) -> None:
    """More than any pipe holds."""
    data = bytes(range(256)) * 4096
    with subject.box() as box:
        said = box.exec(["/usr/bin/md5sum"], stdin=data).stdout.text.split()[0]
        equal(said, hashlib.md5(data, usedforsecurity=False).hexdigest(), "digest of 1 MiB of input")


def stdin_unread(subject: Subject) -> None:
    """A program that ignores its input ends as if there were none."""
    with subject.box() as box:
        true(box.exec(["/bin/true"], stdin=b"x" * 1_000_000).ok, "a program that reads nothing must succeed")


def stdin_empty(subject: Subject) -> None:
    """Without input a reader sees its end at once."""
    with subject.box() as box:
        equal(box.exec(["/bin/cat"], timeout_s=5).reason, "ok", "cat without input")


def argument_of_100_kib(subject: Subject) -> None:
    """What the kernel allows as one argument arrives."""
    with subject.box() as box:
        result = box.exec(["/bin/bash", "-c", "echo ${#1}", "x", "y" * 100_000])
        equal(result.stdout.text, "100000\n", "length of the argument")


def argument_of_1_mib(subject: Subject) -> None:
    """What the kernel refuses is an error that names the way out; the same data comes through a file."""
    data = "x" * (1 << 20)
    with subject.box() as box:
        raises(ValueError, "an argument of 1 MiB", lambda: box.exec(["/bin/true", data]))
        box.write("argument", data.encode())
        equal(
            box.exec(["/usr/bin/wc", "-c", "argument"]).stdout.text.split()[0],
            str(1 << 20),
            "size of the file",
        )


def output_utf8(subject: Subject) -> None:
    """Text beyond ASCII is text."""
    with subject.box() as box:
        equal(box.exec(["/bin/echo", "naïve ☃ 😀"]).stdout.text, "naïve ☃ 😀\n", "output")


def output_invalid_utf8(subject: Subject) -> None:
    """Bytes that are no text are kept as bytes and shown with replacement characters."""
    with subject.box() as box:
        result = bash(box, r"printf 'a\xff\xfeb\0c'")
        equal(result.stdout.head, b"a\xff\xfeb\0c", "bytes")
        true("�" in result.stdout.text, f"text must show a replacement, but is {result.stdout.text!r}")


def output_head_and_tail(subject: Subject) -> None:
    """Beyond the limit the head and the tail stay, and the bytes are counted."""
    with subject.box() as box:
        out = python(box, "import sys; sys.stdout.write('a' * 5000 + 'b' * 5000)").stdout
        equal((out.head, out.tail), (b"a" * 1000, b"b" * 1000), "head and tail")
        equal((out.total_bytes, out.truncated_bytes), (10_000, 8_000), "counts")


def output_order_of_one_stream(subject: Subject) -> None:
    """Many small writes arrive in order."""
    with subject.box() as box:
        out = python(box, "for i in range(300): print(i, flush=True)").stdout.text
        equal(out, "".join(f"{i}\n" for i in range(300)), "output")


def cwd_relative(subject: Subject) -> None:
    """`cwd` is a folder of the workspace."""
    with subject.box() as box:
        box.write("a/b/c", b"")
        equal(box.exec(["/bin/pwd"], cwd="a/b").stdout.text, "/workspace/a/b\n", "cwd")
        equal(box.exec(["/bin/pwd"]).stdout.text, "/workspace\n", "cwd by default")


def cwd_outside(subject: Subject) -> None:
    """Nothing else is."""
    with subject.box() as box:
        raises(ValueError, "cwd a/../..", lambda: box.exec(["/bin/pwd"], cwd="a/../.."))
        raises(ValueError, "cwd /etc", lambda: box.exec(["/bin/pwd"], cwd="/etc"))


def cwd_absent(subject: Subject) -> None:
    """A folder that is not there is the caller's mistake."""
    with subject.box() as box:
        raises(SandboxPathError, "an absent cwd", lambda: box.exec(["/bin/pwd"], cwd="absent"))


def environment_is_clean(subject: Subject) -> None:
    """Nothing of the harness's environment leaks, and the standard part is there."""
    os.environ["HARNESS_SECRET"] = "s3cret"
    try:
        with subject.box() as box:
            lines = box.exec(["/usr/bin/env"]).stdout.text.splitlines()
    finally:
        del os.environ["HARNESS_SECRET"]
    allowed = {"PATH", "HOME", "USER", "LANG", "TZ", "TERM", "TMPDIR", "PWD", "HOSTNAME", "SHLVL", "_"}
    allowed |= {"PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"}
    extra = {line.split("=")[0] for line in lines} - allowed
    true(not extra, f"the environment must hold nothing else, but it holds {sorted(extra)}")
    for wanted in ("TZ=UTC", "LANG=C.UTF-8", "PYTHONHASHSEED=0", "HOME=/workspace"):
        true(wanted in lines, f"the environment must hold {wanted}, but it is {lines}")


def environment_is_extended(subject: Subject) -> None:
    """By the call, value unchanged."""
    with subject.box() as box:
        result = box.exec(["/usr/bin/env"], env={"MINE": "a=b 'c' $d"})
        true(
            "MINE=a=b 'c' $d" in result.stdout.text.splitlines(), f"MINE is missing in {result.stdout.text!r}"
        )


def environment_of_the_spec(subject: Subject) -> None:
    """By the spec, and the call wins."""
    with subject.create(env={"A": "spec", "B": "spec"}) as box:
        result = bash(box, "echo $A $B", env={"B": "call"})
        equal(result.stdout.text, "spec call\n", "variables")


def environment_malformed(subject: Subject) -> None:
    """Names and values that no environment can hold are refused."""
    with subject.box() as box:
        for env in ({"": "x"}, {"A=B": "x"}, {"A": "x\0y"}):
            raises(ValueError, f"the environment {env!r}", partial(box.exec, ["/bin/true"], env=env))


def umask_is_ours(subject: Subject) -> None:
    """The harness's umask does not leak."""
    before = os.umask(0o077)
    try:
        with subject.box() as box:
            equal(bash(box, "umask").stdout.text, "0022\n", "umask")
    finally:
        os.umask(before)


def argv_malformed(subject: Subject) -> None:
    """An empty argv, an empty program and NUL bytes are the caller's mistakes."""
    with subject.box() as box:
        bad: list[list[str]] = [[], [""], ["a\0b"]]
        for argv in bad:
            raises(ValueError, f"argv {argv!r}", partial(box.exec, argv))


def argv_is_not_a_script(subject: Subject) -> None:
    """Arguments are passed as they are, with no shell in between."""
    words = ["$HOME", "`id`", "a b", "*", "", "'", '"', "\\", "-n", "\n"]
    with subject.box() as box:
        result = box.exec(["/usr/bin/python3", "-I", "-S", "-c", "import sys; print(sys.argv[1:])", *words])
        equal(result.stdout.text, f"{words}\n", "arguments")


def program_absent(subject: Subject) -> None:
    """Exit code 127."""
    with subject.box() as box:
        equal(box.exec(["absent-program"]).exit_code, 127, "exit code")


def program_not_executable(subject: Subject) -> None:
    """Exit code 126."""
    with subject.box() as box:
        box.write("text", b"not a program")
        result = box.exec(["/workspace/text"])
        equal((result.exit_code, result.reason), (126, "ok"), "status")


def exit_codes(subject: Subject) -> None:
    """Are the program's own, whichever they are."""
    with subject.box() as box:
        for code in (0, 1, 2, 125, 126, 127, 255):
            equal(bash(box, f"exit {code}").exit_code, code, "exit code")


def exit_by_signal(subject: Subject) -> None:
    """Shows as the negative number of the signal."""
    with subject.box() as box:
        equal(bash(box, "kill -SEGV $$").exit_code, -11, "exit code after SIGSEGV")
        equal(bash(box, "kill -TERM $$").exit_code, -15, "exit code after SIGTERM")


def deadline_keeps_partial_output(subject: Subject) -> None:
    """What was written before the deadline is not lost, and there is no exit code."""
    with subject.box() as box:
        started = time.monotonic()
        result = bash(box, "echo before; echo err >&2; sleep 60 & sleep 60", timeout_s=0.7)
        equal((result.exit_code, result.reason), (None, "timeout"), "status")
        equal((result.stdout.text, result.stderr.text), ("before\n", "err\n"), "streams")
        took = time.monotonic() - started
        true(took < 15, f"a deadline of 0.7 s must end the program, but it took {took:.1f} s")


def deadline_of_zero(subject: Subject) -> None:
    """Ends at once and leaves nothing."""
    with subject.box() as box:
        for _ in range(3):
            equal(box.exec(["/bin/sleep", "60"], timeout_s=0).reason, "timeout", "reason")


def deadline_is_not_raised_for_a_fast_death(subject: Subject) -> None:
    """A program that a signal ended before its deadline has a signal, no timeout."""
    with subject.box() as box:
        result = bash(box, "kill -KILL $$", timeout_s=10)
        equal((result.exit_code, result.reason), (-9, "ok"), "status")


def idle_timeout(subject: Subject) -> None:
    """Counts from the last output."""
    with subject.box(idle_timeout_s=0.8) as box:
        busy = bash(box, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done")
        equal((busy.reason, busy.stdout.text), ("ok", "1\n2\n3\n4\n5\n6\n"), "a busy program")
        quiet = bash(box, "echo start; sleep 60")
        equal((quiet.reason, quiet.stdout.text), ("idle_timeout", "start\n"), "a quiet program")


def close_is_idempotent(subject: Subject) -> None:
    """Twice is once."""
    box = subject.create()
    box.close()
    box.close()


def closed_is_closed(subject: Subject) -> None:
    """Every use afterwards is refused."""
    box = subject.create()
    box.close()
    for name, use in (
        ("exec", lambda: box.exec(["/bin/true"])),
        ("read", lambda: box.read("x")),
        ("write", lambda: box.write("x", b"")),
        ("shell", box.shell),
        ("snapshot", box.snapshot),
        ("fork", box.fork),
    ):
        raises(SandboxClosed, f"{name} after close", use)


def close_from_another_thread(subject: Subject) -> None:
    """Ends the running program with reason `killed`."""
    box = subject.create()
    results: list[ExecResult] = []
    thread = threading.Thread(target=lambda: results.append(bash(box, "echo up; sleep 60")))
    thread.start()
    time.sleep(0.5)
    box.close()
    thread.join(30)
    equal([(r.reason, r.exit_code) for r in results], [("killed", None)], "result of the running program")


def several_at_once(subject: Subject) -> None:
    """Sandboxes in many threads do not disturb one another."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with subject.create() as box:
                for turn in range(3):
                    box.write("n", str(number + turn).encode())
                    equal(box.exec(["/bin/cat", "n"]).stdout.text, str(number + turn), "file")
        except BaseException as error:  # noqa: BLE001 - raised again below, in the case's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def threads_of_one_sandbox(subject: Subject) -> None:
    """Programs asked for at the same time all run."""
    said: list[str] = []
    with subject.box() as box:

        def work(number: int) -> None:
            said.append(box.exec(["/bin/echo", str(number)]).stdout.text)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    equal(sorted(said), [f"{n}\n" for n in range(5)], "outputs")


def usage_of_a_killed_program(subject: Subject) -> None:
    """Processor time counts also when the deadline struck."""
    with subject.box() as box:
        result = bash(box, "while :; do :; done", timeout_s=1.0)
        true(0.05 < result.usage.cpu_s < 3, f"about a second was used, but cpu_s is {result.usage.cpu_s}")


def usage_of_memory(subject: Subject) -> None:
    """The peak is measured where memory is bounded."""
    subject.needs("memory_total")
    with subject.box() as box:
        peak = python(box, "x = bytearray(30 << 20)").usage.max_rss_bytes
        true(30 << 20 < peak <= SMALL.memory_bytes, f"30 MiB were used, but the peak is {peak}")


def user_is_not_root(subject: Subject) -> None:
    """Programs run as an ordinary user with a name."""
    with subject.box() as box:
        true(bash(box, "id -u").stdout.text.strip() not in ("", "0"), "programs must not be root")


def interpreters(subject: Subject) -> None:
    """bash and python3 are there."""
    with subject.box() as box:
        equal(python(box, "print(1 + 1)").stdout.text, "2\n", "python3")
        equal(bash(box, "echo $((1 + 1))").stdout.text, "2\n", "bash")


def tmp_is_writable_and_new(subject: Subject) -> None:
    """Each program finds an empty `/tmp`; what persists is the workspace."""
    with subject.box() as box:
        equal(bash(box, "echo x > /tmp/f; echo y > f; cat /tmp/f f").stdout.text, "x\ny\n", "files")
        equal(bash(box, "ls -A /tmp; cat f").stdout.text, "y\n", "files of the next program")


def context_manager(subject: Subject) -> None:
    """`with` closes."""
    with subject.create() as box:
        opened: Sandbox = box
    raises(SandboxClosed, "exec behind `with`", lambda: opened.exec(["/bin/true"]))


CASES = (
    streams_and_exit_code,
    stdin_binary,
    stdin_large,
    stdin_unread,
    stdin_empty,
    argument_of_100_kib,
    argument_of_1_mib,
    output_utf8,
    output_invalid_utf8,
    output_head_and_tail,
    output_order_of_one_stream,
    cwd_relative,
    cwd_outside,
    cwd_absent,
    environment_is_clean,
    environment_is_extended,
    environment_of_the_spec,
    environment_malformed,
    umask_is_ours,
    argv_malformed,
    argv_is_not_a_script,
    program_absent,
    program_not_executable,
    exit_codes,
    exit_by_signal,
    deadline_keeps_partial_output,
    deadline_of_zero,
    deadline_is_not_raised_for_a_fast_death,
    idle_timeout,
    close_is_idempotent,
    closed_is_closed,
    close_from_another_thread,
    several_at_once,
    threads_of_one_sandbox,
    usage_of_a_killed_program,
    usage_of_memory,
    user_is_not_root,
    interpreters,
    tmp_is_writable_and_new,
    context_manager,
)

"""Standard input, output, and the deadlines that end a program."""

from __future__ import annotations

import hashlib
import time

from sandbox.conformance.subject import LIMITS, Subject, bash, demand, equal, python, succeeds


def binary_stdin(subject: Subject) -> None:
    """All byte values, in and out."""
    data = bytes(range(256)) * 3
    with subject.box() as box:
        output = box.exec(["cat"], stdin=data).stdout
        equal(output.head + output.tail, data, "stdin")


def large_stdin(subject: Subject) -> None:
    """Larger than a pipe, while the program writes too."""
    data = bytes(range(256)) * 8000
    with subject.box() as box:
        text = box.exec(["md5sum"], stdin=data).stdout.text
        equal(text.split()[:1], [hashlib.md5(data, usedforsecurity=False).hexdigest()], "md5sum")
        equal(box.exec(["cat"], stdin=data).stdout.total_bytes, len(data), "bytes of cat")


def mebibyte_by_stdin_and_by_file(subject: Subject) -> None:
    """What no argument can carry."""
    data = b"x" * 2**20
    with subject.box() as box:
        equal(box.exec(["wc", "-c"], stdin=data).stdout.text.strip(), str(2**20), "by stdin")
        box.write("data", data)
        equal(box.exec(["wc", "-c", "data"]).stdout.text.split()[:1], [str(2**20)], "by file")


def unread_stdin(subject: Subject) -> None:
    """A program need not read."""
    with subject.box() as box:
        succeeds(box.exec(["true"], stdin=b"x" * 1_000_000), "true")


def stdin_is_empty_by_default(subject: Subject) -> None:
    """Reading ends at once."""
    with subject.box() as box:
        equal(box.exec(["cat"]).stdout.total_bytes, 0, "bytes of cat")


def utf8_output(subject: Subject) -> None:
    """As text."""
    with subject.box() as box:
        equal(bash(box, "printf 'ä€😀\\n'").stdout.text, "ä€😀\n", "text")


def invalid_output_is_kept(subject: Subject) -> None:
    """Bytes whole, text with replacement characters."""
    with subject.box() as box:
        output = bash(box, "printf 'a\\xff\\xfeb\\0c'").stdout
        equal(output.head + output.tail, b"a\xff\xfeb\0c", "bytes")
        equal(output.text, "a��b\0c", "text")


def output_within_the_limit_is_whole(subject: Subject) -> None:
    """Up to the last byte."""
    with subject.box() as box:
        output = python(box, f"print(end='y' * {LIMITS.max_output_bytes})").stdout
        equal(output.text, "y" * LIMITS.max_output_bytes, "output")
        equal(output.truncated_bytes, 0, "cut")


def head_and_tail_are_kept(subject: Subject) -> None:
    """With the count of all bytes, for each stream."""
    with subject.box() as box:
        result = python(
            box,
            "import sys\nfor s in (sys.stdout, sys.stderr): s.write('a' * 5000 + 'b' * 5000); s.flush()",
        )
        for output in (result.stdout, result.stderr):
            equal((output.head, output.tail), (b"a" * 1000, b"b" * 1000), "head and tail")
            equal((output.total_bytes, output.truncated_bytes), (10_000, 8_000), "counts")
        demand("[8000 bytes cut]" in result.stdout.text, "the text does not mark the cut")


def flood_is_killed(subject: Subject) -> None:
    """Beyond `kill_output_bytes`, with head and tail."""
    with subject.box() as box:
        result = box.exec(["yes"])
        equal((result.reason, result.exit_code), ("output", None), "result")
        demand(result.stdout.total_bytes > LIMITS.kill_output_bytes, f"{result.stdout.total_bytes} bytes")


def interleaved_streams_do_not_block(subject: Subject) -> None:
    """More than a pipe holds, on both in turn."""
    with subject.box() as box:
        code = "import os\nfor _ in range(20): os.write(1, b'o' * 50000); os.write(2, b'e' * 50000)"
        result = python(box, code)
        equal((result.stdout.total_bytes, result.stderr.total_bytes), (10**6, 10**6), "bytes")


def deadline_keeps_partial_output(subject: Subject) -> None:
    """What was written before the limit."""
    with subject.box() as box:
        result = bash(box, "echo before; sleep 60", timeout_s=subject.deadline_s)
        equal((result.exit_code, result.reason, result.stdout.text), (None, "timeout", "before\n"), "result")


def deadline_kills_children(subject: Subject) -> None:
    """Also those that hold the streams, in a session of their own."""
    with subject.box() as box:
        started = time.monotonic()
        result = bash(box, "setsid sleep 60 & (trap '' TERM; sleep 60) & wait", timeout_s=subject.deadline_s)
        equal(result.reason, "timeout", "reason")
        demand(time.monotonic() - started < 15 + subject.deadline_s, "the deadline was overrun by 15 s")


def deadline_of_zero(subject: Subject) -> None:
    """Ends at once and leaves nothing."""
    with subject.box() as box:
        for _ in range(3):
            equal(box.exec(["sleep", "60"], timeout_s=0).reason, "timeout", "reason")


def fast_death_is_no_timeout(subject: Subject) -> None:
    """A program that kills itself within its deadline."""
    with subject.box() as box:
        result = bash(box, "kill -TERM $$", timeout_s=20)
        equal((result.exit_code, result.reason), (-15, "ok"), "result")


def idle_timeout(subject: Subject) -> None:
    """Counts from the last output, and spares a program that keeps writing."""
    idle_s = 0.6 + 3 * subject.launch_s
    with subject.box(idle_timeout_s=idle_s) as box:
        busy = bash(box, f"for i in 1 2 3 4; do echo $i; sleep {idle_s / 2:.2f}; done")
        equal((busy.reason, busy.stdout.text), ("ok", "1\n2\n3\n4\n"), "busy program")
        quiet = bash(box, "echo start; sleep 60")
        equal((quiet.reason, quiet.stdout.text), ("idle_timeout", "start\n"), "quiet program")


def default_deadline(subject: Subject) -> None:
    """The specification's, where the call gives none."""
    with subject.create(timeout_s=subject.deadline_s) as box:
        equal(box.exec(["sleep", "60"]).reason, "timeout", "reason")

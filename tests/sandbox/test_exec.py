from __future__ import annotations

import hashlib
import os
import threading
import time

import pytest

import sandbox
from sandbox import Limits, Sandbox, SandboxClosed, SandboxPathError, SandboxSpec
from tests.sandbox.conftest import SMALL, needs, python


def test_streams_exit_code_and_usage(box: Sandbox) -> None:
    result = box.exec(["/bin/bash", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.exit_code, result.reason, result.ok) == (3, "ok", False)
    assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")
    assert result.usage.wall_s > 0
    assert result.usage.cpu_s > 0


def test_stdin_larger_than_a_pipe_comes_through_whole(box: Sandbox) -> None:
    data = bytes(range(256)) * 4000
    result = box.exec(["/usr/bin/md5sum"], stdin=data)
    assert result.stdout.text.split()[0] == hashlib.md5(data).hexdigest()


def test_program_that_never_reads_its_stdin(box: Sandbox) -> None:
    assert box.exec(["/bin/true"], stdin=b"x" * 1_000_000).ok


def test_environment_is_clean_and_extended(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SECRET", "s3cret")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    lines = box.exec(["/usr/bin/env"], env={"MINE": "a=b c"}).stdout.text.splitlines()
    names = {line.split("=")[0] for line in lines}
    assert names == {
        "PATH", "HOME", "USER", "LANG", "TZ", "TERM", "TMPDIR", "PWD", "MINE", "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
    }  # fmt: skip
    assert "MINE=a=b c" in lines
    assert "TZ=UTC" in lines
    assert "LANG=C.UTF-8" in lines
    assert "PYTHONHASHSEED=0" in lines
    assert "PWD=/workspace" in lines


@pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0y"}])
def test_malformed_environment_is_refused(box: Sandbox, env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="environment variable"):
        box.exec(["/bin/true"], env=env)


def test_harness_umask_does_not_leak(box: Sandbox) -> None:
    before = os.umask(0o077)
    try:
        result = box.exec(["/bin/bash", "-c", "umask"])
    finally:
        os.umask(before)
    assert result.stdout.text == "0022\n"


def test_cwd(box: Sandbox) -> None:
    box.write("a/b/c.txt", b"")
    assert box.exec(["/bin/pwd"], cwd="a/b").stdout.text == "/workspace/a/b\n"
    with pytest.raises(SandboxPathError, match="create it first"):
        box.exec(["/bin/pwd"], cwd="absent")
    with pytest.raises(ValueError, match=r"\.\."):
        box.exec(["/bin/pwd"], cwd="a/../..")
    with pytest.raises(ValueError, match="outside"):
        box.exec(["/bin/pwd"], cwd="/etc")


@pytest.mark.parametrize("argv", [[], [""], ["a\0b"]])
def test_bad_argv_is_refused(box: Sandbox, argv: list[str]) -> None:
    with pytest.raises(ValueError, match="argv"):
        box.exec(argv)


def test_argument_too_long_is_a_clear_error(box: Sandbox) -> None:
    with pytest.raises(ValueError, match="stdin or a file"):
        box.exec(["/bin/true", "x" * 200_000])


def test_missing_and_unrunnable_programs(box: Sandbox) -> None:
    box.write("text", b"not a program")
    assert box.exec(["absent-program"]).exit_code == 127
    result = box.exec(["/workspace/text"])
    assert (result.exit_code, result.reason) == (126, "ok")
    assert "Permission denied" in result.stderr.text


def test_death_by_signal_is_negative(box: Sandbox) -> None:
    assert box.exec(["/bin/bash", "-c", "kill -SEGV $$"]).exit_code == -11


@pytest.mark.parametrize("code", [125, 126, 127, 1, 255])
def test_abuse_32_exit_codes_and_daemon_texts_are_the_programs_own(box: Sandbox, code: int) -> None:
    text = "bwrap: execvp x: No such file or directory; Error response from daemon"
    result = box.exec(["/bin/bash", "-c", f"echo '{text}' >&2; exit {code}"])
    assert (result.exit_code, result.reason, result.stderr.text) == (code, "ok", text + "\n")


def test_timeout_kills_and_keeps_the_output(box: Sandbox) -> None:
    started = time.monotonic()
    result = box.exec(["/bin/bash", "-c", "echo before; sleep 60 & sleep 60"], timeout_s=0.5)
    assert (result.exit_code, result.reason, result.stdout.text) == (None, "timeout", "before\n")
    assert time.monotonic() - started < 10


def test_timeout_zero_leaves_nothing(box: Sandbox) -> None:
    for _ in range(5):
        assert box.exec(["/bin/sleep", "60"], timeout_s=0).reason == "timeout"


def test_idle_timeout_counts_from_the_last_output() -> None:
    limits = Limits(idle_timeout_s=0.4, timeout_s=30)
    with sandbox.create(SandboxSpec(limits=limits)) as box:
        busy = box.exec(["/bin/bash", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done"])
        assert (busy.reason, busy.stdout.text) == ("ok", "1\n2\n3\n4\n5\n6\n")
        quiet = box.exec(["/bin/bash", "-c", "echo start; sleep 60"])
        assert (quiet.reason, quiet.stdout.text) == ("idle_timeout", "start\n")


def test_head_and_tail_are_kept(box: Sandbox) -> None:
    result = python(box, "import sys; sys.stdout.write('a' * 5000 + 'b' * 5000)")
    assert result.stdout.head == b"a" * 1000
    assert result.stdout.tail == b"b" * 1000
    assert (result.stdout.total_bytes, result.stdout.truncated_bytes) == (10_000, 8_000)


def test_time_used_is_measured_also_when_killed(box: Sandbox) -> None:
    result = box.exec(["/bin/bash", "-c", "while :; do :; done"], timeout_s=1.0)
    assert result.reason == "timeout"
    assert 0.05 < result.usage.cpu_s < 1.5


def test_memory_peak_is_measured(box: Sandbox) -> None:
    needs("memory_total")
    result = python(box, "x = bytearray(30 << 20)")
    assert 30 << 20 < result.usage.max_rss_bytes < 96 << 20


def test_close_from_another_thread_ends_exec_with_killed() -> None:
    box = sandbox.create(SandboxSpec(limits=SMALL))
    results: list[sandbox.ExecResult] = []
    thread = threading.Thread(target=lambda: results.append(box.exec(["/bin/sh", "-c", "echo up; sleep 60"])))
    thread.start()
    time.sleep(0.3)
    box.close()
    thread.join(10)
    assert [result.reason for result in results] == ["killed"]
    assert results[0].exit_code is None
    box.close()
    with pytest.raises(SandboxClosed):
        box.exec(["/bin/true"])
    with pytest.raises(SandboxClosed):
        box.read("x")
    with pytest.raises(SandboxClosed):
        box.shell()


def test_many_threads_at_once() -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with sandbox.create(SandboxSpec(limits=SMALL)) as box:
                for turn in range(3):
                    box.write("n", str(number + turn).encode())
                    assert box.exec(["/bin/cat", "n"]).stdout.text == str(number + turn)
        except BaseException as error:  # noqa: BLE001 - reported by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

"""The seam's behaviours over the wire."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import threading
import time

import pytest

import sandbox
from sandbox import (
    Sandbox,
    SandboxBusy,
    SandboxClosed,
    SandboxError,
    SandboxPathError,
    SandboxSpec,
    SandboxUnavailable,
)
from sandbox.remote.settings import Settings
from sandbox.types import MIB
from tests.sandbox.conftest import SMALL
from tests.sandbox.network import ways_out
from tests.sandbox.remote.conftest import serving


def test_bytes_go_in_and_out_unchanged(box: Sandbox) -> None:
    data = bytes(range(256)) * 4
    for redirect in ("", " >&2"):
        result = box.exec(["/bin/bash", "-c", "cat" + redirect], stdin=data)
        assert result.ok
        stream = result.stderr if redirect else result.stdout
        assert stream.head + stream.tail == data


def test_arguments_variables_and_folders(box: Sandbox) -> None:
    box.write("d/f", b"")
    result = box.exec(
        ["/bin/bash", "-c", 'printf "%s|%s|%s|" "$1" "$X" "$PWD"', "-", "a\udcffb\n"],
        env={"X": "y=z"},
        cwd="d",
    )
    assert result.stdout.head == b"a\xffb\n|y=z|/workspace/d|"


def test_results_are_told_apart(box: Sandbox) -> None:
    assert box.exec(["/bin/bash", "-c", "exit 7"]).exit_code == 7
    assert box.exec(["/bin/bash", "-c", "kill -9 $$"]).exit_code == -9
    assert box.exec(["/no/such"]).exit_code == 127
    slow = box.exec(["/bin/bash", "-c", "echo partial; sleep 60"], timeout_s=0.3)
    assert (slow.reason, slow.exit_code, slow.stdout.text) == ("timeout", None, "partial\n")
    loud = box.exec(["/bin/bash", "-c", "head -c 10000 /dev/zero"])
    assert (loud.stdout.total_bytes, loud.stdout.truncated_bytes) == (10_000, 8_000)
    assert box.exec(["/bin/cat", "/dev/zero"]).reason == "output"


@pytest.mark.parametrize("argv", [[], [""], ["a\0b"], "text"])
def test_what_is_no_program(box: Sandbox, argv: list[str]) -> None:
    with pytest.raises(ValueError, match="argv"):
        box.exec(argv)


def test_folder_outside_deadline_and_variables(box: Sandbox) -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        box.exec(["/bin/true"], cwd="../x")
    with pytest.raises(ValueError, match="at most 600"):
        box.exec(["/bin/true"], timeout_s=601.0)
    with pytest.raises(ValueError, match="timeout_s"):
        box.exec(["/bin/true"], timeout_s=float("inf"))
    with pytest.raises(ValueError, match="environment variable"):
        box.exec(["/bin/true"], env={"A=B": "x"})
    with pytest.raises(ValueError, match="argv contains a lone surrogate"):
        box.exec(["\ud800"])


def test_files(box: Sandbox) -> None:
    box.write("a/b", b"\0\xff")
    assert box.read("a/b", max_bytes=2) == b"\0\xff"
    assert box.read("/workspace/a/b", max_bytes=1 << 80) == b"\0\xff"
    box.exec(["/bin/ln", "-s", "/etc/passwd", "link"])
    for path, most in (
        ("a", 10),
        ("link", 10),
        ("gone", 10),
        ("../x", 10),
        ("a/b", 1),
        ("\ud800", 10),
        ("", 9),
    ):
        with pytest.raises(SandboxPathError):
            box.read(path, max_bytes=most)
    for path in ("", "a", "../x", "link", "/etc/x"):
        with pytest.raises(SandboxPathError):
            box.write(path, b"")


def test_shell_keeps_its_state(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("cd /tmp; X=5").ok
        assert shell.run("echo $PWD $X").stdout.text == "/tmp 5\n"
        assert shell.run("sleep 60", timeout_s=0.2).reason == "timeout"
        assert shell.run("echo $X").stdout.text == "\n"
        for refused in (box.snapshot, box.fork):
            with pytest.raises(SandboxBusy):
                refused()
        with pytest.raises(ValueError, match="NUL"):
            shell.run("a\0b")
    shell.close()
    with pytest.raises(SandboxClosed):
        shell.run("true")
    box.snapshot().release()


def test_snapshots_and_forks(box: Sandbox, server: str) -> None:
    box.write("f", b"1")
    first = box.snapshot()
    assert first.held_bytes > 0
    box.write("f", b"2")
    with box.fork() as child:
        child.write("f", b"3")
        child.restore(first)
        assert (child.read("f"), box.read("f")) == (b"1", b"2")
    box.restore(first)
    assert box.read("f") == b"1"
    stranger = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}")
    with stranger, pytest.raises(SandboxError, match="relative"):
        stranger.restore(first)
    first.release()
    first.release()
    assert first.held_bytes == 0
    with pytest.raises(SandboxError, match="released"):
        box.restore(first)


def test_use_after_close(server: str) -> None:
    made = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}")
    shell = made.shell()
    made.close()
    made.close()
    for use in (made.snapshot, made.fork, made.shell, made.posture, lambda: made.read("f")):
        with pytest.raises(SandboxClosed):
            use()
    with pytest.raises(SandboxClosed):
        shell.run("true")


def test_close_from_another_thread_kills(server: str) -> None:
    made = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}")
    timer = threading.Timer(0.5, made.close)
    timer.start()
    started = time.monotonic()
    assert made.exec(["/bin/sleep", "15"]).reason == "killed"
    assert time.monotonic() - started < 10
    timer.join()


def test_capabilities_and_posture_come_from_the_server(box: Sandbox, server: str) -> None:
    local, remote = sandbox.capabilities(), sandbox.capabilities(f"remote:{server}")
    assert (remote.backend, remote.enforced, remote.missing) == (
        "remote:bubblewrap",
        local.enforced - {"allow_list"},
        remote.missing,
    )
    assert remote.missing.keys() == {*local.missing, "allow_list"}
    assert box.capabilities == remote
    posture = box.posture()
    assert posture["no_new_privileges"] is True
    assert posture["effective_capabilities"] == 0


def test_initial_files_environment_and_requirements(server: str) -> None:
    spec = SandboxSpec(
        limits=SMALL, files={"a/b": b"\xff", "\udce9": b"2"}, env={"K": "v"}, require=frozenset({"deadline"})
    )
    with sandbox.create(spec, f"remote:{server}") as made:
        assert (made.read("a/b"), made.read("\udce9")) == (b"\xff", b"2")
        assert made.exec(["/bin/bash", "-c", "echo $K"]).stdout.text == "v\n"
    with pytest.raises(SandboxUnavailable, match="did you mean"):
        sandbox.create(SandboxSpec(require=frozenset({"deadlin"})), f"remote:{server}")
    with pytest.raises(SandboxPathError):
        sandbox.create(SandboxSpec(files={"../a": b""}), f"remote:{server}")


def test_limits_above_the_servers(server: str) -> None:
    for name, value in (
        ("memory_bytes", 1 << 50),
        ("timeout_s", 1e9),
        ("timeout_s", float("nan")),
        ("processes", 0),
    ):
        limits = dataclasses.replace(SMALL, **{name: value})
        with pytest.raises(ValueError, match=name):
            sandbox.create(SandboxSpec(limits=limits), f"remote:{server}")


def test_bases_are_registered_by_name(server: str) -> None:
    for base in ("/", "/etc", "python:3.12"):
        with pytest.raises(SandboxUnavailable, match="no base"):
            sandbox.create(SandboxSpec(base=base), f"remote:{server}")
    with (
        serving(bases={"mine": "theirs"}) as address,
        pytest.raises(SandboxUnavailable, match="knows no base 'theirs'"),
    ):
        sandbox.create(SandboxSpec(base="mine"), f"remote:{address}")


def test_many_threads_use_one_sandbox_and_many(server: str) -> None:
    answers: list[str] = []

    def use(k: int) -> None:
        with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}") as made:
            answers.extend(made.exec(["/bin/echo", str(k)]).stdout.text for _ in range(3))

    threads = [threading.Thread(target=use, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted(f"{k}\n" for k in range(8) for _ in range(3))


def test_a_forked_process_cannot_use_its_parents(server: str) -> None:
    with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}") as made:
        ours, theirs = multiprocessing.Pipe()

        def child() -> None:
            try:
                made.exec(["/bin/true"])
            except SandboxClosed as error:
                theirs.send(str(error))
            made.close()

        context = multiprocessing.get_context("fork")
        process = context.Process(target=child)
        process.start()
        assert ours.poll(10)
        assert "process that made it" in ours.recv()
        process.join(10)
        assert made.exec(["/bin/true"]).ok


@pytest.mark.slow
def test_fifty_megabytes_up_and_down(server: str) -> None:
    big = dataclasses.replace(SMALL, workspace_bytes=128 * MIB, file_bytes=128 * MIB, memory_bytes=512 * MIB)
    data = bytes(range(256)) * (50 * 4096)
    with sandbox.create(SandboxSpec(limits=big), f"remote:{server}") as made:
        made.write("big", data)
        assert made.read("big", max_bytes=len(data)) == data
        assert made.exec(["/usr/bin/wc", "-c"], stdin=data).stdout.text.strip() == str(len(data))
        with pytest.raises(SandboxPathError, match="larger"):
            made.read("big", max_bytes=len(data) - 1)


def test_what_is_too_large_for_one_request() -> None:
    with serving(max_body_bytes=1 * MIB) as address:
        with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") as made:
            with pytest.raises(SandboxPathError, match="1048576"):
                made.write("big", bytes(MIB))
            with pytest.raises(ValueError, match="1048576"):
                made.exec(["/bin/cat"], stdin=bytes(MIB))
            made.write("fits", bytes(MIB - 1000))
        with pytest.raises(ValueError, match="1048576"):
            sandbox.create(SandboxSpec(files={"f": bytes(MIB)}), f"remote:{address}")


def test_networks_are_what_the_operator_registered(server: str) -> None:
    remote = f"remote:{server}"
    assert "operator has registered no destination" in sandbox.capabilities(remote).missing["allow_list"]
    with pytest.raises(SandboxUnavailable, match=r"'pypi\.org:443'\. Registered: none"):
        sandbox.create(SandboxSpec(allow=("pypi.org:443",)), remote)
    with pytest.raises(SandboxUnavailable, match="'allow_list' is required"):
        sandbox.create(SandboxSpec(require=frozenset({"allow_list"})), remote)
    with serving(allow=("*.example.com:443",)) as address:
        remote = f"remote:{address}"
        with sandbox.create(SandboxSpec(limits=SMALL, allow=("allowed.example.com:443",)), remote) as box:
            ways_out.see_a_refusal(box, *ways_out.REFUSALS[0])
        with pytest.raises(SandboxUnavailable, match="Registered"):
            sandbox.create(SandboxSpec(allow=("*.other.com:443",)), remote)
        with pytest.raises(ValueError, match="an allowed host reads"):
            sandbox.create(SandboxSpec(allow=("example.com",)), remote)
    with pytest.raises(ValueError, match="an allowed host"):
        Settings(allow=("*:443",))

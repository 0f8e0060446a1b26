"""Request ids: done once, however often asked; a lost connection or server never runs a program twice."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import sandbox
from sandbox import SandboxLost, SandboxSpec
from sandbox.remote import connection, wire
from sandbox.remote.connection import Connection
from tests.sandbox.conftest import SMALL
from tests.sandbox.remote.conftest import CutWire, Raw, code, exec_frame, serving

APPEND = ("/bin/bash", "-c", "echo x >> log; sleep 0.5; cat log")


def test_a_repeated_number_gives_the_first_result(raw: Raw) -> None:
    path = f"/v1/sandboxes/{raw.created()}/exec"
    with ThreadPoolExecutor(4) as pool:  # also while the first still runs
        answers = list(pool.map(lambda _: raw.numbered(path, exec_frame(*APPEND), 50).content, range(4)))
    answers.append(raw.numbered(path, exec_frame(*APPEND), 50).content)
    assert len(set(answers)) == 1
    assert wire.result_of(answers[0], 0.0).stdout.text == "x\n"
    assert wire.result_of(raw.numbered(path, exec_frame(*APPEND), 51).content, 0.0).stdout.text == "x\nx\n"


def test_the_same_number_for_something_else_is_a_conflict(raw: Raw) -> None:
    box = raw.created()
    raw.numbered(f"/v1/sandboxes/{box}/exec", exec_frame("/bin/true"), 60)
    other = raw.numbered(f"/v1/sandboxes/{box}/exec", exec_frame("/bin/false"), 60)
    elsewhere = raw.numbered(f"/v1/sandboxes/{box}/write", exec_frame("/bin/true"), 60)
    assert [(r.status_code, code(r)) for r in (other, elsewhere)] == [(409, "conflict")] * 2


def test_errors_are_results_too(raw: Raw) -> None:
    path = f"/v1/sandboxes/{raw.created()}/exec"
    frames = [raw.numbered(path, exec_frame(), 70) for _ in range(2)]
    assert [code(r) for r in frames] == ["value"] * 2


def test_creating_requests_happen_once(raw: Raw) -> None:
    empty = b"".join(wire.encode(wire.Head, {}))
    box = raw.created()
    for verb in ("fork", "snapshots", "shells"):
        made = {raw.numbered(f"/v1/sandboxes/{box}/{verb}", empty, 80 + len(verb)).content for _ in range(3)}
        assert len(made) == 1


def test_a_number_whose_result_was_dropped_never_runs_again() -> None:
    with serving(keep_number=2) as address:
        raw = Raw(address).open()
        path = f"/v1/sandboxes/{raw.created()}/exec"
        for number in (10, 11, 12):
            assert raw.numbered(path, exec_frame("/bin/true"), number).status_code == 200
        for again in (raw.numbered(path, exec_frame("/bin/true"), 10), raw.send("GET", "/v1/results/10")):
            assert (again.status_code, code(again)) == (410, "lost")


def test_a_connection_lost_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as address, contextlib.closing(CutWire(address)) as relay:
        with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{relay.address}") as box:
            before = relay.accepted
            timers = [threading.Timer(delay, relay.cut) for delay in (0.15, 0.3)]
            for timer in timers:
                timer.start()
            assert box.exec(APPEND).stdout.text == "x\n"
            assert box.exec(APPEND).stdout.text == "x\nx\n"
            assert relay.accepted > before
        connection.disconnect()


def test_a_long_program_is_waited_for_in_turns() -> None:
    with (
        serving(poll_s=0.2) as address,
        sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") as box,
    ):
        assert box.exec(["/bin/bash", "-c", "sleep 1; echo done"], stdin=b"x").stdout.text == "done\n"


@contextlib.contextmanager
def process(port: int = 0, drain_s: int = 5) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [
        sys.executable,
        "-m",
        "agent_rl.cli",
        "serve",
        "sandbox",
        "--port",
        str(port),
        "--drain-s",
        str(drain_s),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        assert line.startswith("serving bubblewrap sandboxes at http://127.0.0.1:")
        yield server, line.split()[-1]
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_a_restarted_server_runs_nothing_again() -> None:
    with process() as (server, address):
        box = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}")
        snapshot, lost = box.snapshot(), []

        def use() -> None:
            try:
                box.exec(["/bin/sleep", "15"])
            except SandboxLost as error:
                lost.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        time.sleep(0.5)
        server.kill()
        server.wait()
        with process(int(address.rpartition(":")[2])):
            thread.join(20)
            assert len(lost) == 1
            assert "restarted" in lost[0]
            for gone in (lambda: box.exec(["/bin/true"]), box.fork, lambda: box.restore(snapshot)):
                with pytest.raises(SandboxLost):
                    gone()
            snapshot.release()
            box.close()
            with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") as fresh:
                assert fresh.exec(["/bin/true"]).ok
            connection.disconnect()


def test_a_server_that_stays_silent() -> None:
    with process() as (server, address):
        link = Connection(address, None, retry_s=0.5)
        lease = link.lease()
        server.send_signal(signal.SIGKILL)
        server.wait()
        with pytest.raises(SandboxLost, match=r"not heard for 0\.|not heard for 1\."):
            link.numbered(lease, "/v1/sandboxes", [])
        link.close()


def test_sigterm_lets_programs_finish_and_leaves_nothing() -> None:
    with process() as (server, address):
        box = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}")
        idle = box.fork()
        results = []
        thread = threading.Thread(
            target=lambda: results.append(box.exec(["/bin/bash", "-c", "sleep 1.5; echo end"]))
        )
        thread.start()
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(SandboxLost, match="shutting down"):
            idle.exec(["/bin/true"])
        with pytest.raises(sandbox.SandboxUnavailable, match="shutting down"):
            sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}")
        thread.join(10)
        assert [r.stdout.text for r in results] == ["end\n"]
        assert server.wait(10) == 0
        left = subprocess.run(["pgrep", "-f", f"agent-rl-{server.pid}-"], capture_output=True, text=True)
        assert left.stdout == ""
        connection.disconnect()


def test_what_the_server_kills_is_no_result() -> None:
    with process(drain_s=1) as (server, address):
        box = sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}")
        timer = threading.Timer(0.5, server.send_signal, (signal.SIGTERM,))
        timer.start()
        with pytest.raises(SandboxLost, match="server closed"):
            box.exec(["/bin/sleep", "18"])
        assert server.wait(10) == 0
        connection.disconnect()

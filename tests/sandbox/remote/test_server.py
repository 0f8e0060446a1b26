"""What a server refuses: tokens, hosts, quotas, full places, leases that ran out, hostile requests."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sandbox
from sandbox import SandboxLost, SandboxSpec, SandboxUnavailable
from sandbox.remote import connection, tokens, wire
from sandbox.remote import serving as serving_module
from sandbox.remote.settings import Settings
from tests.sandbox.conftest import SMALL
from tests.sandbox.remote.conftest import Raw, code, exec_frame, serving

TOKEN, OTHER = "t" * 32, "u" * 40
EMPTY = b"".join(wire.encode(wire.Head, {}))


def test_tokens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"# two clients\nred:{TOKEN}\nblue:{OTHER}\n")
    with serving(tokens=tokens.read_tokens(file)) as address:
        for given_token in ("", "x" * 32, TOKEN[:-1]):
            answer = Raw(address, given_token).send("POST", "/v1/leases")
            assert (answer.status_code, code(answer)) == (401, "unauthorized")
        red, blue = Raw(address, TOKEN).open(), Raw(address, OTHER).open()
        red_box = red.created()
        assert code(blue.numbered(f"/v1/sandboxes/{red_box}/exec", exec_frame("/bin/true"))) == "closed"
        blue.lease = red.lease  # a stolen lease is of no use without the token
        assert code(blue.numbered(f"/v1/sandboxes/{red_box}/exec", exec_frame("/bin/true"))) == "lease"
        with pytest.raises(SandboxUnavailable, match="AGENT_RL_SANDBOX_TOKEN"):
            sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}")
        monkeypatch.setenv("AGENT_RL_SANDBOX_TOKEN_FILE", str(file))
        monkeypatch.setenv("AGENT_RL_SANDBOX_URL", address)
        with sandbox.create(SandboxSpec(limits=SMALL), "remote") as box:
            assert box.exec(["/bin/true"]).ok
        monkeypatch.setenv("AGENT_RL_SANDBOX_TOKEN", OTHER)
        assert "exec" not in sandbox.capabilities("remote").missing


def test_only_loopback_without_a_token() -> None:
    for host in ("0.0.0.0", "192.168.1.1", "::", "example.org"):
        with pytest.raises(ValueError, match="needs a token"):
            Settings(host=host)
    assert Settings(host="0.0.0.0", tokens={"a": TOKEN}).loopback is False
    with pytest.raises(ValueError, match="at least 32"):
        Settings(tokens={"a": "short"})
    assert TOKEN not in repr(Settings(tokens={"a": TOKEN}))


@pytest.mark.parametrize("backend", ["local", "local:x", "remote:http://127.0.0.1:1"])
def test_backends_that_are_not_served(backend: str) -> None:
    with pytest.raises(ValueError, match="not served"):
        Settings(backend=backend)


@pytest.mark.parametrize(
    "address", ["ftp://h:1", "http://u:p@h:1", "http://h:1/x?token=y", "http://", "http://h:x"]
)
def test_addresses(address: str) -> None:
    with pytest.raises(ValueError, match="http://HOST:PORT") as caught:
        sandbox.create(SandboxSpec(), f"remote:{address}")
    assert "token=" not in str(caught.value)
    assert "u:p" not in str(caught.value)


def test_no_address_and_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_RL_SANDBOX_URL", raising=False)
    with pytest.raises(SandboxUnavailable, match="agent-rl serve sandbox"):
        sandbox.create(SandboxSpec(), "remote")
    assert "agent-rl serve sandbox" in sandbox.capabilities("remote").missing["exec"]


def test_a_taken_port_is_one_sentence(server: str) -> None:
    port = int(server.rpartition(":")[2])
    with pytest.raises(SandboxUnavailable, match=f"port {port} of 127.0.0.1 is taken"):
        serving_module.listen(Settings(port=port))


def test_another_host_is_meant(raw: Raw) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:80", "[::1", "10.0.0.1"):
        answer = raw.send("POST", "/v1/leases", host=host)
        assert (answer.status_code, code(answer)) == (421, "host")
    assert raw.send("POST", "/v1/leases/renew", host="localhost:9").status_code == 200


def test_a_web_page_cannot_ask(raw: Raw) -> None:
    answer = raw.bare("POST", "/v1/leases")  # a simple request, as a page may send it anywhere
    assert (answer.status_code, code(answer)) == (400, "malformed")
    assert raw.bare("OPTIONS", "/v1/leases").status_code == 400


def test_quotas() -> None:
    with serving(max_sandboxes=2, max_shells=1, max_bytes=3 * SMALL.workspace_bytes, max_leases=2) as address:
        raw = Raw(address).open()
        limits = {"workspace_bytes": SMALL.workspace_bytes}
        first, _ = raw.created(limits=limits), raw.created(limits=limits)
        path = f"/v1/sandboxes/{first}"
        assert code(raw.create(limits=limits)) == "quota"
        assert raw.numbered(f"{path}/snapshots", EMPTY).status_code == 200
        for refused in ("snapshots", "fork"):
            assert code(raw.numbered(f"{path}/{refused}", EMPTY)) == "quota"
        assert raw.numbered(f"{path}/shells", EMPTY).status_code == 200
        assert code(raw.numbered(f"{path}/shells", EMPTY)) == "quota"
        raw.send("DELETE", path)
        raw.send("DELETE", path)  # counts once, and its shell with it
        again = raw.created(limits={"workspace_bytes": 1 << 20})
        assert raw.numbered(f"/v1/sandboxes/{again}/shells", EMPTY).status_code == 200
        assert Raw(address).send("POST", "/v1/leases").status_code == 200
        assert code(Raw(address).send("POST", "/v1/leases")) == "quota"


def test_full_places_are_waited_for_and_time_in_the_queue_is_told() -> None:
    with serving(running=1, queued=1) as address:
        boxes = [sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") for _ in range(4)]
        results: list[sandbox.ExecResult] = []
        threads = [
            threading.Thread(target=lambda b=box: results.append(b.exec(["/bin/sleep", "0.4"])))
            for box in boxes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [r.ok for r in results] == [True] * 4
        assert all(r.usage.wall_s < 1.0 for r in results)
        assert max(r.usage.queue_s for r in results) > 0.7
        raw = Raw(address).open()
        path = f"/v1/sandboxes/{raw.created()}/exec"
        sleepers = [threading.Thread(target=lambda b=box: b.exec(["/bin/sleep", "1"])) for box in boxes[:2]]
        for thread in sleepers:
            thread.start()
        time.sleep(0.4)
        answer = raw.numbered(path, exec_frame("/bin/true"))
        assert (answer.status_code, code(answer), answer.headers["retry-after"]) == (429, "overloaded", "1")
        for thread in sleepers:
            thread.join()


def test_a_silent_client_loses_its_sandboxes() -> None:
    with serving(lease_s=1.0) as address:
        raw = Raw(address).open()
        box = raw.created()
        with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") as kept:
            time.sleep(2.2)
            assert kept.exec(["/bin/true"]).ok  # its lease was renewed in the background
            answer = raw.numbered(f"/v1/sandboxes/{box}/exec", exec_frame("/bin/true"))
            assert (answer.status_code, code(answer)) == (410, "lease")
        link = connection.connect(address)
        lease = link.lease()
        raw.lease = lease.head.lease
        assert raw.send("DELETE", "/v1/leases").status_code == 200
        with pytest.raises(SandboxLost):
            link.numbered(lease, "/v1/sandboxes", [EMPTY])
        with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{address}") as fresh:
            assert fresh.exec(["/bin/true"]).ok


def test_bodies_have_caps(raw: Raw) -> None:
    box = raw.created()
    host, port = raw.address.removeprefix("http://").split(":")
    start = f"POST /v1/sandboxes/{box}/write HTTP/1.1\r\nHost: {host}\r\n{wire.PROTOCOL_HEADER}: 1\r\n"
    start += f"{wire.LEASE_HEADER}: {raw.lease}\r\n{wire.REQUEST_HEADER}: 900\r\nConnection: close\r\n"
    for headers, status in (
        ("Content-Length: 999999999999\r\n\r\n", b"413"),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        ("Content-Length: -1\r\n\r\n", b"400"),
    ):
        with socket.create_connection((host, int(port))) as link:
            link.sendall((start + headers).encode())
            assert link.recv(1000).split()[1] == status


HOSTILE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)


@HOSTILE
@given(
    verb=st.sampled_from(
        ["exec", "fork", "restore", "shells", "snapshots", "write", "read", "posture", "zz"]
    ),
    body=st.one_of(
        st.binary(max_size=200),
        st.builds(lambda head: len(head).to_bytes(4, "big") + head, st.binary(max_size=100)),
        st.builds(
            lambda head: len(head).to_bytes(4, "big") + head,
            st.sampled_from(
                [
                    b'{"parts":[],"argv":9,"env":0,"timeout_s":null}',
                    b'{"parts":[0,0],"argv":0,"env":0,"timeout_s":1e999}',
                    b'{"parts":[0],"max_bytes":-5}',
                    b'{"parts":[9007199254740993]}',
                    b'{"parts":[' + b"0," * 60_000 + b"0]}",
                    b'{"parts":[],"snapshot":"\\ud800"}',
                    b"[" * 100_000,
                    b'{"parts":[0,0]}',
                ]
            ),
        ),
    ),
)
def test_hostile_bodies_are_refused(raw: Raw, verb: str, body: bytes) -> None:
    if not hasattr(raw, "box"):
        raw.box = raw.created()  # type: ignore[attr-defined]
    answer = raw.numbered(f"/v1/sandboxes/{raw.box}/{verb}", body)  # type: ignore[attr-defined]
    assert 400 <= answer.status_code < 500, answer.content
    assert b"Traceback" not in answer.content


@HOSTILE
@given(
    path=st.text(max_size=60), number=st.text(st.characters(max_codepoint=126, min_codepoint=33), max_size=20)
)
def test_hostile_paths_and_numbers_are_refused(raw: Raw, path: str, number: str) -> None:
    from urllib.parse import quote

    answer = raw.send("POST", "/v1/sandboxes/" + quote(path, safe=""), b"x", agent_rl_request=number)
    assert 300 <= answer.status_code < 500


def test_a_request_of_nobody(server: str) -> None:
    for method, path in (("GET", "/"), ("POST", "/v1/sandboxes"), ("GET", "/docs"), ("DELETE", "/v1/leases")):
        assert 400 <= Raw(server).send(method, path).status_code < 500

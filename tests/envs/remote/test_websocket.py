"""The protocol through a WebSocket: who is let in, what is no message, and requests whose socket broke."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from envs import registry
from envs.remote.client import RemoteEnv, remote_class
from envs.remote.server import running
from envs.remote.settings import EnvSettings
from sandbox.remote import connection, wire
from sandbox.remote.websocket import PATH, Ask, SocketTransport
from tests.envs.toys.sums import Sums, call

SUMS = "tests.envs.toys.sums:Sums"
OURS = {wire.PROTOCOL_HEADER: wire.PROTOCOL}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running(EnvSettings(env=SUMS, port=0)) as where:
        yield where.replace("http", "ws", 1)
        connection.disconnect()
        remote_class.cache_clear()


@pytest.mark.parametrize("headers", [{**OURS, "Origin": "http://evil.example"}, {}])
@pytest.mark.parametrize("host", ["127.0.0.1", "evil.example"])
def test_a_web_page_is_not_let_in(address: str, headers: dict[str, str], host: str) -> None:
    headers = OURS if host == "evil.example" else headers
    port = int(address.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as line,
        pytest.raises(InvalidStatus, match="403"),
        connect(f"ws://{host}:{port}{PATH}", sock=line, additional_headers=headers, proxy=None),
    ):
        pass


def test_a_token_is_asked_for_and_its_absence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "t" * 32
    with running(EnvSettings(env=SUMS, port=0, tokens={"me": token})) as where:
        link = SocketTransport(where.replace("http", "ws", 1), None)
        reply = link.exchange(
            "POST", "/v1/leases", wire.encode(wire.Head, {}), headers={}, most=9999, timeout_s=5
        )
        assert (reply.status, b"token is missing" in reply.body) == (401, True)
        link.close()
        monkeypatch.setenv("AGENT_RL_SANDBOX_TOKEN", token)
        assert registry.spec(where.replace("http", "ws", 1)).load().id == "sums-v1"
        connection.disconnect()


@pytest.mark.parametrize(
    "message",
    [
        "text",
        b"",
        b"\x00\x00\x00\x02{}",
        b"".join(wire.encode(Ask, {"n": 1, "method": "GET", "path": "/v1/x"})),
        b"x" * 100,
    ],
)
def test_what_is_no_message_ends_the_socket_and_no_other(address: str, message: str | bytes) -> None:
    with connect(address + PATH, additional_headers=OURS, proxy=None) as line:
        line.send(message)
        with pytest.raises(ConnectionClosed):
            line.recv(timeout=5)
    assert registry.spec(address).load().tasks("test", 1)


@pytest.mark.parametrize("path", ["/v2/x", "http://other/v1/info", "//other", "/v1/../v1/info"])
def test_a_message_asks_for_paths_of_the_protocol_alone(path: str) -> None:
    with pytest.raises(wire.Malformed):
        wire.encode(Ask, {"n": 1, "method": "GET", "path": path})


def _cut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it was closed meanwhile
        line.shutdown(socket.SHUT_RDWR)


def test_a_step_whose_socket_broke_is_played_once(address: str) -> None:
    (task,) = Sums.tasks("test", 1)
    env = registry.make(address)
    assert isinstance(env, RemoteEnv)
    env.reset(options={"task": task})
    transport = connection.connect(address)._transport
    assert isinstance(transport, SocketTransport)
    for n in range(5):
        line = transport._line
        assert line is not None
        cut = threading.Timer(0.001 * n, _cut, [line._socket.socket])
        cut.start()
        shown = env.step(call("note", text=f"n{n}")).observation[0]["content"]
        assert shown.split()[:-1] == [f"n{k}" for k in range(n + 1)]
        cut.join()
        if n == 3:
            break
    env.close()


def test_a_large_request_goes_over_http(address: str) -> None:
    (task,) = Sums.tasks("test", 1)
    env = registry.make(address)
    env.reset(options={"task": task})
    text = "x" * (wire.MAX_MESSAGE_BYTES + 1)
    shown = env.step(call("note", text=text)).observation[0]["content"]
    assert shown.startswith("xxx")
    env.close()

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from sandbox.remote import connection, wire
from sandbox.remote.serving import running
from sandbox.remote.settings import Settings
from tests.sandbox.conftest import SMALL


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[str]:
    """A server in a thread; the client's leases end before it does."""
    with running(Settings(port=0, **{"drain_s": 5.0, **settings})) as address:
        try:
            yield address
        finally:
            connection.disconnect()


@pytest.fixture
def box(server: str) -> Iterator[Sandbox]:
    with sandbox.create(SandboxSpec(limits=SMALL), f"remote:{server}") as made:
        yield made
        assert made.exec(["/bin/echo", "fine"]).stdout.text == "fine\n"


@dataclass
class Raw:
    """A client that says what a test wants, not what ours would."""

    address: str
    token: str = ""
    lease: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, method: str, path: str, content: bytes = b"", **headers: str) -> httpx.Response:
        every = {wire.PROTOCOL_HEADER: wire.PROTOCOL, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.lease:
            every[wire.LEASE_HEADER] = self.lease
        if self.token:
            every["authorization"] = f"Bearer {self.token}"
        return self.bare(method, path, content, every)

    def bare(
        self, method: str, path: str, content: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=30, verify=False) as http:
            return http.request(method, self.address + path, content=content, headers=headers)

    def open(self) -> Raw:
        head, _ = wire.decode(wire.LeaseHead, self.send("POST", "/v1/leases").content)
        self.lease = head.lease
        return self

    def numbered(self, path: str, content: bytes, number: int | None = None) -> httpx.Response:
        return self.send("POST", path, content, agent_rl_request=str(number or next(self.numbers)))

    def create(self, **fields: Any) -> httpx.Response:
        every = {"limits": {}, "env": 0, "files": 0, "base": "", "require": [], **fields}
        return self.numbered("/v1/sandboxes", b"".join(wire.encode(wire.CreateHead, every)))

    def created(self, **fields: Any) -> str:
        return wire.decode(wire.MadeHead, self.create(**fields).content)[0].id


@pytest.fixture
def raw(server: str) -> Iterator[Raw]:
    client = Raw(server).open()
    yield client
    client.send("DELETE", "/v1/leases")


def exec_frame(*argv: str, stdin: bytes = b"", timeout_s: float | None = None) -> bytes:
    fields = {"argv": len(argv), "env": 0, "timeout_s": timeout_s}
    return b"".join(wire.encode(wire.ExecHead, fields, [*(a.encode() for a in argv), b".", stdin]))


def code(response: httpx.Response) -> str:
    return wire.decode(wire.RefusalHead, response.content)[0].code


class CutWire:
    """A relay before a server, whose connections a test cuts."""

    def __init__(self, address: str) -> None:
        self._target = ("127.0.0.1", int(address.rpartition(":")[2]))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.accepted = 0
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """End all connections now; later ones are relayed again."""
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)
        for end in self._open:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            far = socket.create_connection(self._target)
            self._open += [near, far]
            for pair in ((near, far), (far, near)):
                thread = threading.Thread(target=_pipe, args=pair, daemon=True)
                self._threads.append(thread)
                thread.start()


def _pipe(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return

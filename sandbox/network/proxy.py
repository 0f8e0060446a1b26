"""The proxy outside a sandbox: takes `CONNECT host:port` over a Unix socket, and connects to what it has checked."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import h11

from sandbox.network.policy import Policy, Refused, resolve

_CHUNK = 65536
_HEAD_BYTES = 16384
_HEAD_S, _CONNECT_S, _IDLE_S = 10.0, 10.0, 120.0
_STATUS = {"bad": 400, "refused": 403, "unreachable": 502}
_LOGGED = 1000


@dataclass(frozen=True, slots=True)
class Attempt:
    """One connection that a program asked for."""

    host: str
    port: int
    verdict: str
    """`ok`, or why not."""


class Proxy:
    """Serves one sandbox on a listening Unix socket until closed.

    Args:
        listener: bound and listening; the proxy closes it.
        policy: what is allowed.
        connections: how many may be open at a time; more wait in the socket's queue.
    """

    def __init__(self, listener: socket.socket, policy: Policy, connections: int = 32) -> None:
        self._listener, self._policy = listener, policy
        self._slots = threading.Semaphore(connections)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.attempts: deque[Attempt] = deque(maxlen=_LOGGED)
        """The newest connections that were asked for, refused ones included."""
        self._thread = threading.Thread(target=self._accept, name="sandbox-proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Cut every connection; safe to call twice."""
        with self._lock:
            self._closed = True
            ends = list(self._open)
        for end in (self._listener, *ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            self._slots.acquire()
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                self._slots.release()
                return
            threading.Thread(target=self._serve, args=(client,), name="sandbox-tunnel", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with self._kept(client):
                client.settimeout(_HEAD_S)
                try:
                    host, port = _asked(client)
                    server = self._connect(host, port)
                except Refused as refusal:
                    kind, text = refusal.args if len(refusal.args) == 2 else ("refused", str(refusal))
                    _answer(client, _STATUS[kind], text)
                    return
                with self._kept(server):
                    client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                    _tunnel(client, server)
        except OSError:  # either side hung up
            pass
        finally:
            self._slots.release()

    def _connect(self, host: str, port: int) -> socket.socket:
        try:
            server = _reach(resolve(self._policy.check(host, port), port), port)
        except Refused as refusal:
            self.attempts.append(Attempt(host[:255], port, str(refusal.args[-1])))
            raise
        self.attempts.append(Attempt(host[:255], port, "ok"))
        return server

    @contextlib.contextmanager
    def _kept(self, end: socket.socket) -> Iterator[None]:
        with end:
            with self._lock:
                if self._closed:
                    raise OSError("the proxy was closed")
                self._open.add(end)
            try:
                yield
            finally:
                with self._lock:
                    self._open.discard(end)


def _asked(client: socket.socket) -> tuple[str, int]:
    """Host and port of a CONNECT request, by a library's reading of the head.

    Raises:
        Refused: it is no such request.
    """
    reader, taken = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES), 0
    try:
        while (event := reader.next_event()) is h11.NEED_DATA:
            # One byte more than the head may already be the tunnel's, but a client waits for the answer.
            data = client.recv(_HEAD_BYTES - taken) if taken < _HEAD_BYTES else b""
            taken += len(data)
            reader.receive_data(data)
    except h11.RemoteProtocolError as error:
        raise Refused("bad", "this is not an HTTP request") from error
    if not isinstance(event, h11.Request) or event.method != b"CONNECT":
        raise Refused("bad", "this proxy takes CONNECT alone: use https")
    host, _, port = event.target.decode("latin-1").rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) < 65536:
        raise Refused("bad", "CONNECT takes host:port")
    if reader.trailing_data[0]:
        raise Refused("bad", "nothing may follow CONNECT before its answer")
    return host, int(port)


def _reach(addresses: list[str], port: int) -> socket.socket:
    """Connect to the first address that answers: the checked ones, never the name again."""
    for address in addresses:
        with contextlib.suppress(OSError):
            return socket.create_connection((address, port), timeout=_CONNECT_S)
    raise Refused("unreachable", "the host does not answer")


def _answer(client: socket.socket, status: int, text: str) -> None:
    body = f"agent-rl sandbox: {text}\n".encode()
    lines = [f"HTTP/1.1 {status} Refused", "Content-Type: text/plain", f"Content-Length: {len(body)}"]
    head = "\r\n".join([*lines, "Connection: close", "", ""])
    client.sendall(head.encode() + body)


def _tunnel(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes both ways, each direction until its sender ends, or is silent or not read for too long."""
    for end in (client, server):
        end.settimeout(_IDLE_S)
    back = threading.Thread(target=_pump, args=(server, client), name="sandbox-tunnel", daemon=True)
    back.start()
    _pump(client, server)
    back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # a side is gone: the other direction has nobody to talk to either
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

"""The protocol through one WebSocket, the client's side: requests of all threads share it, replies come in any order.

A message is a frame of `wire` whose one part is the body of a request or reply. Larger bodies go over HTTP, to the same
server. A socket that broke is opened again by the next request; whoever waited asks again, as after a lost reply.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Annotated, Literal

from pydantic import Field
from websockets.exceptions import InvalidHandshake, WebSocketException
from websockets.sync.client import connect as open_socket

from sandbox.errors import SandboxLost
from sandbox.remote import wire
from sandbox.remote.transport import Reply, Transport, Trouble, retry_after

PATH = "/v1/socket"
_OPEN_S, _CLOSE_S, _PING_S = 5.0, 1.0, 10.0
_MAX_REPLY_BYTES = 257 << 20


class Ask(wire.Head):
    """Part: the body."""

    n: wire.Count
    method: Literal["GET", "POST", "DELETE"]
    path: Annotated[str, Field(pattern=r"^/v1/[A-Za-z0-9/_-]{0,300}$")]
    lease: Annotated[str, Field(max_length=200)] = ""
    request: Annotated[str, Field(max_length=20)] = ""


class Said(wire.Head):
    """Part: the body."""

    n: wire.Count
    status: wire.Count
    ours: bool
    """Whether the reply is of this protocol."""
    retry_after: Annotated[str, Field(max_length=20)] = ""


class SocketTransport:
    """One exchange with a server through a socket that all threads share; see `Transport`."""

    def __init__(self, address: str, token: str | None) -> None:
        self.address = address
        self._http = Transport(address.replace("ws", "http", 1), token)
        self._headers = {wire.PROTOCOL_HEADER: wire.PROTOCOL}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._lock = threading.Lock()
        self._line: _Line | None = None

    def exchange(
        self,
        method: str,
        path: str,
        pieces: list[bytes],
        *,
        headers: Mapping[str, str],
        most: int,
        timeout_s: float,
    ) -> Reply:
        """Send a frame and take the reply, of at most `most` bytes.

        What is too large for a message goes over HTTP, and so does what comes when the server refuses the socket: its
        answer says why.

        Raises:
            Trouble: the socket failed, or nothing came in time.
            SandboxLost: the reply is not of this protocol.
        """
        line = self._open() if sum(map(len, pieces)) <= wire.MAX_MESSAGE_BYTES else None
        if line is None:
            return self._http.exchange(method, path, pieces, headers=headers, most=most, timeout_s=timeout_s)
        fields = {
            "method": method,
            "path": path,
            "lease": headers.get(wire.LEASE_HEADER, ""),
            "request": headers.get(wire.REQUEST_HEADER, ""),
        }
        try:
            said, body = line.ask(fields, b"".join(pieces), timeout_s)
        except (WebSocketException, OSError) as error:  # a TimeoutError is one: what is silent is given up
            self._drop(line)
            raise Trouble(f"{type(error).__name__}: {error}") from error
        if not said.ours:
            raise SandboxLost(f"{self.address} answers status {said.status} but is no server of ours")
        if len(body) > most:
            raise SandboxLost(f"{self.address} answers more than the {most} bytes that were asked for")
        return Reply(said.status, bytearray(body), retry_after(said.retry_after))

    def close(self) -> None:
        """Hang up."""
        line = self._line
        if line is not None:
            self._drop(line)
        self._http.close()

    def _open(self) -> _Line | None:
        with self._lock:
            if self._line is None:
                try:
                    self._line = _Line(self.address, self._headers)
                except InvalidHandshake:
                    return None
                except (WebSocketException, OSError) as error:
                    raise Trouble(f"{type(error).__name__}: {error}") from error
            return self._line

    def _drop(self, line: _Line) -> None:
        with self._lock:
            if self._line is line:
                self._line = None
        line.close()


class _Line:
    """An open socket, and who waits for an answer on it.

    Raises:
        WebSocketException, OSError: it cannot be opened.
    """

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self._opened = contextlib.ExitStack()
        opening = open_socket(
            address + PATH,
            additional_headers=headers,
            compression=None,
            proxy=None,
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            ping_interval=_PING_S,
            ping_timeout=_PING_S,
            max_size=_MAX_REPLY_BYTES,
        )
        self._socket = self._opened.enter_context(opening)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[tuple[Said, bytes]]] = {}
        threading.Thread(target=self._listen, name="sandbox-socket", daemon=True).start()

    def ask(self, fields: Mapping[str, str], body: bytes, timeout_s: float) -> tuple[Said, bytes]:
        """Send a request and wait for its reply.

        Raises:
            WebSocketException, OSError: the socket ended, or nothing came in time.
        """
        number, answer = next(self._numbers), Future[tuple[Said, bytes]]()
        message = b"".join(wire.encode(Ask, {**fields, "n": number}, (body,)))
        self._waiting[number] = answer
        try:
            self._socket.send(message)
            return answer.result(timeout_s)
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Hang up; who waits is told."""
        self._opened.close()

    def _listen(self) -> None:
        why = ConnectionResetError("the socket ended")
        try:
            for message in self._socket:
                said, (body,) = wire.decode(Said, message if isinstance(message, bytes) else b"")
                waiting = self._waiting.pop(said.n, None)
                if waiting is not None:
                    waiting.set_result((said, body))
        except (WebSocketException, OSError, ValueError) as error:  # ValueError: no frame, or not of one part
            why = ConnectionResetError(f"the socket ended: {error}")
        finally:
            self._opened.close()
            while self._waiting:
                _, waiting = self._waiting.popitem()
                waiting.set_exception(why)

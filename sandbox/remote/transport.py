"""One exchange with a server over HTTP: a request out, a bounded reply back. Everything that arrives is hostile."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from sandbox.errors import SandboxLost, SandboxUnavailable
from sandbox.remote import wire

URL_VARIABLE = "AGENT_RL_SANDBOX_URL"
_CONNECT_S, _WRITE_S = 5.0, 60.0
_KEPT_CONNECTIONS, _KEEP_ALIVE_S = 64, 30.0
_GATEWAY_TROUBLE = frozenset({502, 503, 504})
_MAX_RETRY_AFTER_S = 30.0
_MAX_PAUSE_S = 2.0
_SOCKET_OPTIONS = [  # a host that is gone shows within 40 s
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
]


class Trouble(Exception):
    """Nothing was heard, or not from our server: the request may have arrived or not."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said."""

    status: int
    body: bytearray
    retry_after_s: float


def checked_address(where: str, schemes: Sequence[str] = ("http", "https")) -> str:
    """The server's address; an empty one is read from the environment.

    Raises:
        ValueError: it is no plain `http://HOST:PORT` or `https://HOST:PORT`, or of another of the schemes.
        SandboxUnavailable: none is given.
    """
    address = where or os.environ.get(URL_VARIABLE, "")
    if not address:
        raise SandboxUnavailable(
            f"the remote backend needs a server's address: remote:http://127.0.0.1:8700, or {URL_VARIABLE}; "
            "start one with: agent-rl serve sandbox"
        )
    try:
        parts = urlsplit(address)
        plain = (
            parts.scheme in schemes
            and parts.hostname
            and parts.path in ("", "/")
            and not (parts.username or parts.password or parts.query or parts.fragment)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        plain = False
    if not plain:  # not shown: it may hold a token
        forms = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
        raise ValueError(f"a server's address is {forms}, without a path or a token")
    return f"{parts.scheme}://{parts.netloc}"


class Transport:
    """A pool of connections to one server; used from any thread."""

    def __init__(self, address: str, token: str | None) -> None:
        self.address = address
        headers = {"accept-encoding": "identity", wire.PROTOCOL_HEADER: wire.PROTOCOL}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=_KEPT_CONNECTIONS,
            keepalive_expiry=_KEEP_ALIVE_S,
        )
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(limits=limits, socket_options=_SOCKET_OPTIONS, trust_env=False),
            headers=headers,
            trust_env=False,  # no proxy, no .netrc
            follow_redirects=False,
        )

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

        Raises:
            Trouble: the connection failed, or a gateway stands before a server that does not answer.
            SandboxLost: the reply is not of this protocol.
        """
        timeout = httpx.Timeout(timeout_s, connect=_CONNECT_S, write=_WRITE_S, pool=None)
        size = sum(map(len, pieces))
        every = {**headers, "content-length": str(size), "content-type": wire.MEDIA_TYPE}
        try:
            with self._client.stream(
                method, self.address + path, content=_content(pieces), headers=every, timeout=timeout
            ) as response:
                if response.headers.get("content-type") != wire.MEDIA_TYPE:
                    if response.status_code in _GATEWAY_TROUBLE:
                        raise Trouble(f"HTTP status {response.status_code} of something before the server")
                    raise SandboxLost(
                        f"{self.address} answers HTTP status {response.status_code} but is no sandbox server of ours"
                    )
                return Reply(
                    response.status_code,
                    self._body(response, most),
                    retry_after(response.headers.get("retry-after", "")),
                )
        except httpx.TransportError as error:
            raise Trouble(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def _body(self, response: httpx.Response, most: int) -> bytearray:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise SandboxLost(f"{self.address} answers compressed, which was not asked for")
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > most:
                raise SandboxLost(f"{self.address} answers more than the {most} bytes that were asked for")
        return body


class Silence:
    """How long nothing was heard, and when to give up."""

    def __init__(self, budget_s: float, address: str) -> None:
        self._budget_s, self._address = budget_s, address
        self._since, self._pause_s = 0.0, 0.0

    def bear(self, trouble: Trouble) -> None:
        """Wait before the next try.

        Raises:
            SandboxLost: it has lasted too long.
        """
        now = time.monotonic()
        self._since = self._since or now
        if now - self._since >= self._budget_s:
            raise SandboxLost(
                f"the sandbox server {self._address} was not heard for {now - self._since:.1f} s ({trouble}); "
                "is it running, and can it be reached from here?"
            )
        time.sleep(self._pause_s * random.uniform(0.5, 1.0))
        self._pause_s = min(_MAX_PAUSE_S, 2 * self._pause_s or 0.05)  # the first try again comes at once

    def end(self) -> None:
        """It answered."""
        self._since = self._pause_s = 0.0


def _content(pieces: list[bytes]) -> bytes | Iterator[bytes]:
    if sum(map(len, pieces)) <= wire.CHUNK_BYTES:
        return b"".join(pieces)
    return wire.chunks(pieces)


def retry_after(text: str) -> float:
    """Seconds that the header of that name asks for, within bounds; 1 where it has none."""
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1.0
    return min(max(seconds, 0.1), _MAX_RETRY_AFTER_S)

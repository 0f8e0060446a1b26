"""Requests as they arrive: who sends them, which number they have, and their bodies under caps."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from sandbox.remote import tokens, wire
from sandbox.remote.refusals import Refused
from sandbox.remote.settings import Settings

LOCAL_CLIENT = "local"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_NUMBER = 2**53


class Buffers:
    """Bytes of bodies that may be in memory at once; who wants more waits, and its sender with it."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int, timeout_s: float) -> None:
        """Occupy `size` bytes until `give`.

        Raises:
            Refused: `overloaded`, if there is no room in time.
        """
        if not self._waiting and size <= self._free:
            self._free -= size
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, future))
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except BaseException as error:
            if future.done() and not future.cancelled():
                self.give(size)  # the room came at the same moment
            if isinstance(error, TimeoutError):
                why = "too many large requests at once; try again later"
                raise Refused("overloaded", why, retry_after_s=1) from None
            raise

    def give(self, size: int) -> None:
        """Give bytes back."""
        self._free += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            wanted, future = self._waiting.popleft()
            if not future.done():
                self._free -= wanted
                future.set_result(None)


def client_of(request: HTTPConnection, settings: Settings) -> str:
    """The client that a request comes from.

    Raises:
        Refused: another host is meant (a web page that rebinds DNS), the token is wrong, or the protocol is.
    """
    if settings.loopback and _host(request) not in _LOOPBACK_NAMES | {settings.host}:
        raise Refused(
            "host", "the Host header names another machine; use the address that the server printed"
        )
    client = LOCAL_CLIENT
    if settings.tokens:
        holder = tokens.holder(settings.tokens, request.headers.get("authorization", ""))
        if holder is None:
            raise Refused(
                "unauthorized",
                f"the token is missing or wrong; set {tokens.TOKEN_VARIABLE} or {tokens.TOKEN_FILE_VARIABLE}",
            )
        client = holder
    if request.headers.get(wire.PROTOCOL_HEADER) != wire.PROTOCOL:
        raise Refused(
            "malformed",
            f"the header {wire.PROTOCOL_HEADER} must be {wire.PROTOCOL}; client and server differ in version",
        )
    return client


def number_of(request: Request) -> int:
    """The number that a client gave a request.

    Raises:
        Refused: `malformed`.
    """
    return number(request.headers.get(wire.REQUEST_HEADER, ""))


def number(text: str) -> int:
    """A request's number, from 1.

    Raises:
        Refused: `malformed`.
    """
    if text.isascii() and text.isdigit() and len(text) <= 16 and 0 < int(text) <= _MAX_NUMBER:
        return int(text)
    raise Refused(
        "malformed", f"the header {wire.REQUEST_HEADER} must be a whole number from 1 to {_MAX_NUMBER}"
    )


def length_of(request: Request, most: int) -> int:
    """The announced length of a body.

    Raises:
        Refused: `malformed` without one, `too_large`.
    """
    text = request.headers.get("content-length", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise Refused("malformed", "a request must announce its length (Content-Length)")
    if int(text) > most:
        raise Refused("too_large", f"a request of {text} bytes is above this server's limit of {most}")
    return int(text)


async def body_of(request: Request, length: int, timeout_s: float) -> bytearray:
    """The whole body.

    Raises:
        Refused: `malformed`, if it is cut short, longer than announced, or too slow.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > length:
                    break
    except (ClientDisconnect, TimeoutError):
        raise Refused("malformed", f"only {len(body)} of {length} bytes arrived in time") from None
    if len(body) != length:
        raise Refused("malformed", f"{len(body)} bytes arrived, but {length} were announced")
    return body


def digest_of(request: Request, body: bytearray) -> bytes:
    """What makes two requests the same: method, path and body."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}\n".encode("utf-8", "surrogateescape"))
    digest.update(body)
    return digest.digest()


def _host(request: HTTPConnection) -> str | None:
    try:
        return urlsplit("//" + request.headers.get("host", "")).hostname
    except ValueError:
        return None

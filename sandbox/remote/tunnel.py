"""Requests of the protocol through one WebSocket, the server's side: each message is one, and is routed like any other.

A message is a frame of `sandbox.remote.websocket`. Because it goes through the same application, whatever holds over
HTTP holds here: leases, numbers, tokens, quotas, deadlines. A request's work belongs to its lease and not to the
socket, so that a client whose socket broke asks again through another.
"""

from __future__ import annotations

import asyncio
import contextlib

import httpx
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from starlette.requests import HTTPConnection

from sandbox.remote import wire
from sandbox.remote.incoming import client_of
from sandbox.remote.refusals import Refused
from sandbox.remote.settings import Settings
from sandbox.remote.websocket import PATH, Ask, Said

_AT_ONCE = 64
"""Requests of one socket; with more, nothing further is read from it."""
_PASSED = ("authorization", "host", wire.PROTOCOL_HEADER)
_POLICY_VIOLATION, _BAD_DATA = 1008, 1003


def add_tunnel(app: FastAPI, settings: Settings) -> None:
    """Let an application's requests come through a WebSocket too."""

    async def tunnel(socket: WebSocket) -> None:
        if socket.headers.get("origin") is not None or not _is_client(socket, settings):
            await socket.close(_POLICY_VIOLATION)  # a web page, or somebody without a token
            return
        await socket.accept()
        peer = (socket.client.host, socket.client.port) if socket.client is not None else ("", 0)
        inside = httpx.ASGITransport(app=app, client=peer)
        headers = {name: socket.headers[name] for name in _PASSED if name in socket.headers}
        async with httpx.AsyncClient(transport=inside, base_url="http://server", headers=headers) as client:
            await _Tunnel(socket, client).run()

    app.add_api_websocket_route(PATH, tunnel)


def _is_client(connection: HTTPConnection, settings: Settings) -> bool:
    try:
        client_of(connection, settings)
    except Refused:
        return False
    return True


class _Tunnel:
    """One client's socket."""

    def __init__(self, socket: WebSocket, client: httpx.AsyncClient) -> None:
        self._socket, self._client = socket, client
        self._places, self._sending = asyncio.Semaphore(_AT_ONCE), asyncio.Lock()
        self._work: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client hangs up; who waits for an answer then is gone, the work goes on."""
        try:
            while True:
                await self._places.acquire()
                message = await self._socket.receive_bytes()
                task = asyncio.create_task(self._answer(message))
                self._work.add(task)
                task.add_done_callback(self._done)
        except (WebSocketDisconnect, KeyError):  # KeyError: text, where the protocol has bytes
            for task in self._work:
                task.cancel()
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
            await self._socket.close(_BAD_DATA)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        self._places.release()

    async def _answer(self, message: bytes) -> None:
        try:
            ask, parts = wire.decode(Ask, message)
            ((body,),) = wire.take(parts, 1)
            headers = {wire.LEASE_HEADER: ask.lease, wire.REQUEST_HEADER: ask.request}
            headers["content-type"] = wire.MEDIA_TYPE
            reply = await self._client.request(ask.method, ask.path, content=body, headers=headers)
        except (wire.Malformed, httpx.InvalidURL, httpx.HTTPError, ValueError):
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(_BAD_DATA)
            return
        fields = {
            "n": ask.n,
            "status": reply.status_code,
            "ours": reply.headers.get("content-type") == wire.MEDIA_TYPE,
            "retry_after": reply.headers.get("retry-after", ""),
        }
        message = b"".join(wire.encode(Said, fields, (reply.content,)))
        async with self._sending:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # it hung up meanwhile
                await self._socket.send_bytes(message)

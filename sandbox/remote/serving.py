"""Running a server: its socket, its start, and its end on SIGTERM, which leaves nothing."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol

import uvicorn
from fastapi import FastAPI

from sandbox.errors import SandboxUnavailable
from sandbox.remote import wire
from sandbox.remote.app import make_app
from sandbox.remote.service import open_service
from sandbox.remote.settings import Settings

_MAX_CONNECTIONS = 4096
_FLUSH_S = 5
_KEEP_ALIVE_S = 75  # longer than the client's, so that the client is the one to hang up
_START_S = 30.0


class Served(Protocol):
    """What stands behind a server's routes."""

    async def watch(self) -> None:
        """End what is over, for ever."""
        ...

    async def drain(self) -> None:
        """Refuse new work, let what runs finish, then close everything."""
        ...


Open = Callable[[], tuple[Served, FastAPI]]
"""Makes a service and its application; called in a thread before the first request."""


def _sandboxes(settings: Settings) -> Open:
    def make() -> tuple[Served, FastAPI]:
        service = open_service(settings)
        return service, make_app(service)

    return make


class _Server(uvicorn.Server):
    """A signal drains the service first; a second one ends it at once."""

    def __init__(self, config: uvicorn.Config, service: Served, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready
        self._ending: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals = 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        del sig, frame
        self._signals += 1
        if self._signals > 1:
            self.should_exit = True
        self.stop()

    def stop(self) -> None:
        """Drain, then exit; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin_to_end)

    def _begin_to_end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        await self._service.drain()
        self.should_exit = True


def listen(settings: Settings) -> socket.socket:
    """The listening socket.

    Raises:
        SandboxUnavailable: the port is taken, or the address is not of this machine.
    """
    try:
        listening = socket.create_server(
            (settings.host, settings.port),
            family=socket.AF_INET6 if ":" in settings.host else socket.AF_INET,
            backlog=1024,
        )
        # Inherited by what is accepted; asyncio would not set it, and each answer would wait 40 ms for an ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        where = f"{settings.host}:{settings.port}"
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise SandboxUnavailable(
                f"port {settings.port} of {settings.host} is taken by another program; give another --port, "
                "or --port 0 for a free one"
            ) from None
        raise SandboxUnavailable(f"cannot listen on {where}: {error}; check --host and --port") from None


def address_of(listening: socket.socket) -> str:
    """What a client is given."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(settings: Settings, ready: Callable[[str], None], opened: Open | None = None) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address. What is served are sandboxes, unless `opened` says.

    Raises:
        SandboxUnavailable: the backend cannot run here, or the address is taken.
        ValueError: the settings name no backend.
    """
    with listen(settings) as listening:
        make = opened or _sandboxes(settings)
        asyncio.run(_serve(settings, listening, lambda _: ready(address_of(listening)), make))


@contextmanager
def running(settings: Settings, opened: Open | None = None) -> Iterator[str]:
    """A server in a thread of this process, for as long as the block lasts; gives its address.

    Raises:
        As `serve`.
    """
    started, servers, errors = threading.Event(), list[_Server](), list[BaseException]()

    def ready(server: _Server) -> None:
        servers.append(server)
        started.set()

    def run() -> None:
        try:
            asyncio.run(_serve(settings, listening, ready, opened or _sandboxes(settings)))
        except (RuntimeError, ValueError, OSError) as error:  # carried to the thread that waits
            errors.append(error)
        finally:
            started.set()

    with listen(settings) as listening:
        address = address_of(listening)
        thread = threading.Thread(target=run, name="sandbox-server", daemon=True)
        thread.start()
        started.wait(_START_S)
        if errors:
            raise errors[0]
        try:
            yield address
        finally:
            servers[0].stop()
            thread.join(2 * settings.drain_s + _FLUSH_S)


async def _serve(
    settings: Settings, listening: socket.socket, ready: Callable[[_Server], None], opened: Open
) -> None:
    service, app = await asyncio.to_thread(opened)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="websockets-sansio" if settings.websocket else "none",
        ws_max_size=wire.MAX_MESSAGE_BYTES + wire.MAX_HEAD_BYTES,
        ws_per_message_deflate=False,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_FLUSH_S,
    )
    server = _Server(config, service, lambda: ready(server))
    watch = asyncio.get_running_loop().create_task(service.watch())
    try:
        await server.serve(sockets=[listening])
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await service.drain()

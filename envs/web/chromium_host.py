"""One Chromium per process, shared by its episodes: each has a context of its own, at most `MAX_CONTEXTS` at a time."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uvicorn
from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from envs.web.chromium_launch import SWITCHES, Launch
from envs.web.loop import shared
from sandbox.errors import SandboxLost

MAX_CONTEXTS = 8
START_S = 60.0
HEADER = "x-agent-rl-episode"
"""Names the episode to the server. It is secret and a page cannot read it."""
VIEWPORT = {"width": 1000, "height": 800}

ASGI = Callable[[Any, Any, Any], Awaitable[None]]


class ChromiumHost:
    """Browser, driver and server; every method runs on the shared loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._places = asyncio.Semaphore(MAX_CONTEXTS)
        self._starting = asyncio.Lock()
        self._apps: dict[str, tuple[str, ASGI]] = {}
        self._launch: Launch | None = None
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def context(self, host: str, app: ASGI, **options: Any) -> tuple[BrowserContext, str]:
        """A new context whose requests for `host` this application answers, and the episode's name.

        It waits for a place; `leave` gives the place back.

        Raises:
            SandboxLost: Chromium does not start.
            SandboxUnavailable: Chromium or bubblewrap is not installed.
        """
        await self._places.acquire()
        name = secrets.token_hex(16)
        try:
            browser = await self._started()
            self._apps[name] = (host, app)
            context = await browser.new_context(
                viewport={"width": VIEWPORT["width"], "height": VIEWPORT["height"]},
                locale="en-GB",
                timezone_id="UTC",
                accept_downloads=False,
                service_workers="block",
                extra_http_headers={HEADER: name},
                reduced_motion="reduce",
                **options,
            )
        except BaseException as error:
            self._apps.pop(name, None)
            self._places.release()
            if isinstance(error, PlaywrightError):
                raise SandboxLost(f"Chromium gives no context: {error}") from error
            raise
        return context, name

    async def leave(self, context: BrowserContext, name: str) -> None:
        """Close a context and give its place back."""
        if self._apps.pop(name, None) is None:
            return
        try:
            with contextlib.suppress(PlaywrightError):  # the browser has gone, and the context with it
                await context.close()
        finally:
            self._places.release()

    @property
    def alive(self) -> bool:
        """Whether Chromium runs."""
        return self._browser is not None and self._browser.is_connected()

    async def _started(self) -> Browser:
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.stop()
                await self._start()
            if self._browser is None:
                raise SandboxLost("Chromium has gone")
            return self._browser

    async def _start(self) -> None:
        self._launch = Launch()
        config = uvicorn.Config(
            self._dispatch,
            uds=str(self._launch.socket),
            interface="asgi3",
            proxy_headers=False,
            lifespan="off",
            log_level="error",
            access_log=False,
            ws="none",
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._serving = asyncio.ensure_future(self._server.serve())
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.01)
        self._launch.socket.chmod(0o666)  # the folder above it is the sandbox's alone
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=str(self._launch.script),
            args=list(SWITCHES),
            chromium_sandbox=False,
            timeout=START_S * 1000,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )

    async def stop(self) -> None:
        """End browser, driver and server; a later `context` starts them again."""
        browser, playwright, server, serving = self._browser, self._playwright, self._server, self._serving
        self._browser = self._playwright = self._server = self._serving = None
        if browser is not None:
            with contextlib.suppress(PlaywrightError):
                await browser.close()
        if playwright is not None:
            await playwright.stop()
        if server is not None and serving is not None:
            server.should_exit = server.force_exit = True
            await serving
        if self._launch is not None:
            self._launch.close()
            self._launch = None

    async def _dispatch(self, scope: Any, receive: Any, send: Any) -> None:
        """Send a request to its episode's application; what names no episode and host is refused."""
        headers: Mapping[bytes, bytes] = dict(scope.get("headers", ()))
        name = headers.get(HEADER.encode(), b"").decode("latin-1")
        host, app = self._apps.get(name, ("", None))
        if scope["type"] != "http" or app is None or headers.get(b"host", b"").decode("latin-1") != host:
            await send({"type": "http.response.start", "status": 421, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        kept = [(key, value) for key, value in scope["headers"] if key != HEADER.encode()]
        await app({**scope, "headers": kept}, receive, send)


_host: ChromiumHost | None = None


async def host() -> ChromiumHost:
    """The Chromium of this process; to be awaited on the shared loop."""
    global _host
    if _host is None or _host.pid != os.getpid():
        _host = ChromiumHost()
        atexit.register(close_all)
    return _host


def close_all() -> None:
    """End this process's Chromium, if there is one."""
    if _host is not None and _host.pid == os.getpid():
        shared().run(_host.stop())

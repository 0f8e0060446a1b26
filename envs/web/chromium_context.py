"""One episode's context in Chromium: the origin lock, the fixed clock, pages whose loading and crashes are watched."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, JSHandle, Page, Request, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from envs.web.chromium_host import ASGI, ChromiumHost, host
from envs.web.origin import origin_of
from sandbox.errors import SandboxLost
from tools.errors import ToolError

ACT_S = 5.0
SETTLE_S = 8.0
QUIET_S = 0.06
"""A page that starts no navigation for this long after an action has settled."""

T = TypeVar("T")


class Context:
    """Made by `Context.make`; every method runs on the shared loop."""

    def __init__(self, chromium: ChromiumHost, inner: BrowserContext, name: str, home: str) -> None:
        self._host, self._inner, self._name, self._home = chromium, inner, name, home
        self.crashed: set[Page] = set()
        self._known: set[Page] = set()
        self._making = False
        self._loading: set[Request] = set()
        self._jobs: set[asyncio.Task[None]] = set()

    @classmethod
    async def make(
        cls, app: ASGI, home: str, *, now: str, cookies: dict[str, str], scripts: tuple[str, ...]
    ) -> Context:
        """A context that only knows the origin of `home`, whose requests `app` answers."""
        chromium, place = await host(), urlsplit(home)
        inner, name = await chromium.context(place.netloc, app)
        made = cls(chromium, inner, name, home)
        await inner.route("**/*", made._guard)
        await inner.route_web_socket("**/*", _refuse)
        await inner.clock.set_fixed_time(now)
        for script in scripts:
            await inner.add_init_script(script)
        here = f"{place.scheme}://{place.netloc}"
        if cookies:
            kept = [{"name": k, "value": v, "url": here, "httpOnly": True} for k, v in cookies.items()]
            await inner.add_cookies(kept)  # type: ignore[arg-type]
        inner.on("page", made._popup)
        return made

    async def _guard(self, route: Route) -> None:
        """The origin lock: scheme, host and port."""
        request = route.request
        with contextlib.suppress(PlaywrightError):  # the page has gone meanwhile
            inline = request.url.startswith("data:") and not request.is_navigation_request()
            if inline or origin_of(request.url) == origin_of(self._home):
                await route.continue_()
            else:
                await route.abort("blockedbyclient")

    def _popup(self, page: Page) -> None:
        if page not in self._known and not self._making:
            self._spawn(page.close())

    def _spawn(self, job: Coroutine[Any, Any, Any]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(PlaywrightError):
                await job

        task = asyncio.ensure_future(quietly())
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def new_page(self) -> Page:
        """An empty page."""
        self._making = True
        try:
            page = await self._inner.new_page()
        finally:
            self._making = False
        self._known.add(page)
        page.on("crash", lambda gone: self.crashed.add(gone))
        page.on("dialog", lambda dialog: self._spawn(dialog.dismiss()))
        page.on("request", lambda r: self._loading.add(r) if r.is_navigation_request() else None)
        page.on("requestfinished", lambda request: self._loading.discard(request))
        page.on("requestfailed", lambda request: self._loading.discard(request))
        return page

    async def settle(self, page: Page) -> None:
        """Wait until no navigation is going on and the page in front has loaded, `SETTLE_S` at most each."""
        loop = asyncio.get_running_loop()
        until, quiet = loop.time() + SETTLE_S, loop.time() + QUIET_S
        while loop.time() < min(until, quiet) or (self._loading and loop.time() < until):
            await asyncio.sleep(0.01)
            if self._loading:
                quiet = loop.time() + QUIET_S
        if page not in self.crashed:
            with contextlib.suppress(ToolError):  # a page that never ends loading is shown as it is
                await self.timed(page.wait_for_load_state("load", timeout=SETTLE_S * 1000), page)

    async def timed(self, job: Awaitable[T], page: Page | None, limit_s: float = ACT_S + SETTLE_S) -> T:
        """Wait for a page, not for ever.

        Raises:
            ToolError: the page failed, crashed or did not answer: the model's to see.
            SandboxLost: Chromium itself has gone.
        """
        try:
            return await asyncio.wait_for(job, limit_s)
        except TimeoutError as error:
            raise ToolError("the page does not answer") from error
        except PlaywrightError as error:
            if not self._host.alive:
                raise SandboxLost("Chromium has gone") from error
            if page in self.crashed:
                raise ToolError("the page crashed; open an address with goto") from error
            raise ToolError(_plain(error)) from error

    async def evaluate(self, page: Page, code: str, argument: Any = None) -> JSHandle:
        """Run a function of ours in a page."""
        return await self.timed(page.evaluate_handle(code, argument), page, ACT_S)

    async def leave(self) -> None:
        """Close it and give its place back."""
        await self._host.leave(self._inner, self._name)


def _plain(error: PlaywrightError) -> str:
    """One line for the model, without Playwright's call log."""
    line = error.message.split("\n", 1)[0].partition(": ")[2] or error.message
    if "Timeout" in line:
        return "the page did not let this happen in time: the element is covered, moving or gone"
    return line[:200]


async def _refuse(socket: WebSocketRoute) -> None:
    await socket.close(code=1008, reason="not allowed")

"""The real browser: one Chromium context behind the same actions and the same lines as the light browser."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ElementHandle, JSHandle, Page, Request, Route, WebSocketRoute
from playwright.async_api import Error as PlaywrightError

from envs.web.browser import MAX_TABS, View, check_key, fillable, option_of
from envs.web.chromium_host import ASGI, ChromiumHost, host
from envs.web.elements import attributes
from envs.web.loop import shared
from envs.web.origin import origin_of, resolve
from envs.web.pages import Element, read_page
from envs.web.pages import Page as Lines
from sandbox.errors import SandboxLost
from tools.errors import ToolError

ACT_S = 5.0
SETTLE_S = 8.0
QUIET_S = 0.06
"""A page that starts no navigation for this long after an action has settled."""
LIMITS = {"nodes": 20_000, "html": 1 << 20, "value": 10_000}

T = TypeVar("T")


@cache
def _reflect() -> str:
    return (Path(__file__).parent / "reflect.js").read_text(encoding="utf-8").split("\n", 2)[2]


class ChromiumBrowser:
    """One episode's context. Whatever a page does, crash included, is the model's observation."""

    def __init__(
        self,
        app: ASGI,
        *,
        now: str,
        cookies: dict[str, str] | None = None,
        clickable: bool = False,
        scripts: tuple[str, ...] = (),
        pictures: str = "",
    ) -> None:
        """Nothing runs before `open`.

        Args:
            app: answers the requests of the origin.
            now: what the page's clock shows, as ISO text.
            cookies: of the origin, from the start.
            clickable: whether elements under a pointing hand count as elements to act on.
            scripts: run in every page before its own.
            pictures: a folder for one screenshot a view; empty for none.
        """
        self._app, self._now, self._cookies, self._scripts = app, now, cookies or {}, scripts
        self._limits = {**LIMITS, "clickable": clickable}
        self._pictures, self._taken = pictures, 0
        self._host: ChromiumHost | None = None
        self._context: BrowserContext | None = None
        self._name = ""
        self._home = ""
        self._tabs: list[Page] = []
        self._active = 0
        self._crashed: set[Page] = set()
        self._loading: set[Request] = set()
        self._nodes: JSHandle | None = None
        self._elements: tuple[Element, ...] = ()

    # --------------------------------------------------------------------------------------------- life

    def open(self, url: str) -> None:
        """Begin at this address."""
        shared().run(self._open(url))

    async def _open(self, url: str) -> None:
        self._home, self._host = url, await host()
        place = urlsplit(url)
        self._context, self._name = await self._host.context(place.netloc, self._app)
        await self._context.route("**/*", self._guard)
        await self._context.route_web_socket("**/*", _refuse)
        await self._context.clock.set_fixed_time(self._now)
        for script in self._scripts:
            await self._context.add_init_script(script)
        if self._cookies:
            here = f"{place.scheme}://{place.netloc}"
            kept = [{"name": k, "value": v, "url": here, "httpOnly": True} for k, v in self._cookies.items()]
            await self._context.add_cookies(kept)  # type: ignore[arg-type]
        self._context.on("page", self._popup)
        with contextlib.suppress(ToolError):  # a first page that does not load is shown as such
            await self._act(lambda: self._new_tab(url))

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
        if page not in self._tabs and not self._making_tab:
            self._spawn(page.close())

    _making_tab = False

    def _spawn(self, job: Coroutine[Any, Any, Any]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(PlaywrightError):
                await job

        task = asyncio.ensure_future(quietly())
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    @property
    def _jobs(self) -> set[asyncio.Task[None]]:
        return self.__dict__.setdefault("_jobs_", set())

    async def _new_tab(self, url: str) -> None:
        if self._context is None:
            raise SandboxLost("the browser was closed")
        self._making_tab = True
        try:
            page = await self._context.new_page()
        finally:
            self._making_tab = False
        page.on("crash", lambda gone: self._crashed.add(gone))
        page.on("dialog", lambda dialog: self._spawn(dialog.dismiss()))
        page.on("request", lambda r: self._loading.add(r) if r.is_navigation_request() else None)
        page.on("requestfinished", lambda request: self._loading.discard(request))
        page.on("requestfailed", lambda request: self._loading.discard(request))
        self._tabs.append(page)
        self._active = len(self._tabs) - 1
        await page.goto(url, timeout=SETTLE_S * 1000)

    def copy(self) -> None:
        """A real browser cannot be copied: its episodes are replayed."""

    def close(self) -> None:
        """Close the context."""
        context, chromium = self._context, self._host
        self._context = None
        if context is not None and chromium is not None:
            shared().run(chromium.leave(context, self._name))

    # ------------------------------------------------------------------------------------------- reading

    def view(self) -> View:
        """What is open now."""
        return shared().run(self._view())

    async def _view(self) -> View:
        page = self._page
        lines = await self._read(page)
        if self._pictures and page not in self._crashed:
            await self._photograph(page)
        titles = [lines.title if tab is page else await self._title(tab) for tab in self._tabs]
        return View(url=page.url.partition("#")[0], page=lines, tabs=tuple(titles), active=self._active)

    async def _title(self, tab: Page) -> str:
        try:
            title = await asyncio.wait_for(tab.title(), ACT_S)
        except (PlaywrightError, TimeoutError):
            title = ""
        return title or tab.url

    async def _read(self, page: Page) -> Lines:
        self._elements, self._nodes = (), None
        if page in self._crashed:
            return Lines(title="", lines=("(the page crashed)",), elements=())
        try:
            found = await self._timed(page.evaluate_handle(_reflect(), self._limits), ACT_S)
            html = await self._timed(found.evaluate("(found) => found.html"), ACT_S)
        except ToolError as error:
            return Lines(title="", lines=(f"(the page cannot be read: {error})",), elements=())
        self._nodes, lines = found, read_page(str(html))
        self._elements = lines.elements
        return lines

    async def _photograph(self, page: Page) -> None:
        self._taken += 1
        path = Path(self._pictures, f"{self._taken:04d}.png")
        with contextlib.suppress(PlaywrightError, TimeoutError):  # for people only: nothing depends on it
            await asyncio.wait_for(page.screenshot(path=path), ACT_S)

    @property
    def _page(self) -> Page:
        return self._tabs[self._active]

    # ------------------------------------------------------------------------------------------- actions

    def click(self, element: int) -> None:
        """Click an element."""
        self._do(lambda: self._on(element, lambda _, node: node.click(timeout=ACT_S * 1000)))

    def fill(self, element: int, text: str) -> None:
        """Replace the text of a field."""

        async def fill(found: Element, node: ElementHandle) -> None:
            await node.fill(fillable(found, text), timeout=ACT_S * 1000)

        self._do(lambda: self._on(element, fill))

    def select(self, element: int, option: str) -> None:
        """Choose an option by its text."""

        async def select(found: Element, node: ElementHandle) -> None:
            await node.select_option(index=option_of(found, option), timeout=ACT_S * 1000)

        self._do(lambda: self._on(element, select))

    def press(self, element: int, key: str) -> None:
        """Press a key in an element."""
        check_key(key)
        self._do(lambda: self._on(element, lambda _, node: node.press(key, timeout=ACT_S * 1000)))

    def goto(self, url: str) -> None:
        """Open an address of the same origin."""
        target = resolve(self._home, url) if self._page in self._crashed else resolve(self._here, url)
        self._do(lambda: self._goto(target))

    @property
    def _here(self) -> str:
        """The address of the page in front; a page without one, such as an error's, stands for the first."""
        return self._page.url if origin_of(self._page.url) == origin_of(self._home) else self._home

    async def _goto(self, url: str) -> None:
        if self._page in self._crashed:
            gone, number = self._page, self._active
            with contextlib.suppress(PlaywrightError):
                await gone.close()
            await self._new_tab(url)
            self._tabs[number] = self._tabs.pop()
            self._active = number
            return
        try:
            await self._page.goto(url, timeout=SETTLE_S * 1000)
        except PlaywrightError as error:
            if "interrupted by another navigation" not in error.message:
                raise
            # the browser's own error page, of the address asked for before, arrived late
            await self._page.goto(url, timeout=SETTLE_S * 1000)

    def back(self) -> None:
        """Open the page before this one."""

        async def back() -> None:
            depth = await self._page.evaluate("() => history.length")
            if await self._page.go_back(timeout=SETTLE_S * 1000) is None and int(depth) <= 2:
                raise ToolError("there is no page before this one")

        self._do(back)

    def tab(self, action: str, index: int) -> None:
        """Open, switch to, or close a tab."""
        self._do(lambda: self._tab(action, index))

    async def _tab(self, action: str, index: int) -> None:
        if action == "new":
            if len(self._tabs) >= MAX_TABS:
                raise ToolError(f"at most {MAX_TABS} tabs can be open")
            await self._new_tab(self._home)
            return
        if not 0 <= index < len(self._tabs):
            raise ToolError(f"tabs are numbered 0 to {len(self._tabs) - 1}, got {index}")
        if action == "close":
            if len(self._tabs) == 1:
                raise ToolError("the last tab cannot be closed")
            gone = self._tabs.pop(index)
            self._active -= self._active >= index and self._active > 0
            await gone.close()
        else:
            self._active = index
        await self._page.bring_to_front()

    # --------------------------------------------------------------------------------------------- doing

    async def _on(self, number: int, act: Callable[[Element, ElementHandle], Awaitable[Any]]) -> None:
        if not 1 <= number <= len(self._elements):
            raise ToolError(f"elements are numbered 1 to {len(self._elements)} on this page, got {number}")
        found = self._elements[number - 1]
        if "disabled" in attributes(found.node):
            raise ToolError(f"element {number} is disabled")
        index = int(attributes(found.node).get("data-agent-node", "-1"))
        handle = self._nodes and await self._nodes.evaluate_handle("(found, i) => found.nodes[i]", index)
        node = handle.as_element() if handle else None
        if node is None:
            raise ToolError(f"element {number} is no longer on the page")
        await act(found, node)

    def _do(self, act: Callable[[], Awaitable[Any]]) -> None:
        shared().run(self._act(act))

    async def _act(self, act: Callable[[], Awaitable[Any]]) -> None:
        """Act, then wait until the page has settled, also when the action failed half-way."""
        try:
            await self._timed(act())
        finally:
            await self._settle()

    async def _settle(self) -> None:
        loop = asyncio.get_running_loop()
        until, quiet = loop.time() + SETTLE_S, loop.time() + QUIET_S
        while loop.time() < min(until, quiet) or (self._loading and loop.time() < until):
            await asyncio.sleep(0.01)
            if self._loading:
                quiet = loop.time() + QUIET_S
        with contextlib.suppress(ToolError):  # a page that never ends loading is shown as it is
            if self._tabs and self._page not in self._crashed:
                await self._timed(self._page.wait_for_load_state("load", timeout=SETTLE_S * 1000))

    async def _timed(self, job: Awaitable[T], limit_s: float = ACT_S + SETTLE_S) -> T:
        """Wait for the page, not for ever; its failures are the model's to see, Chromium's own end is not."""
        try:
            return await asyncio.wait_for(job, limit_s)
        except TimeoutError as error:
            raise ToolError("the page does not answer") from error
        except PlaywrightError as error:
            if self._host is None or not self._host.alive:
                raise SandboxLost("Chromium has gone") from error
            if self._tabs and self._page in self._crashed:
                raise ToolError("the page crashed; open an address with goto") from error
            raise ToolError(_plain(error)) from error


def _plain(error: PlaywrightError) -> str:
    """One line for the model, without Playwright's call log."""
    line = error.message.split("\n", 1)[0].partition(": ")[2] or error.message
    if "Timeout" in line:
        return "the page did not let this happen in time: the element is covered, moving or gone"
    return line[:200]


async def _refuse(socket: WebSocketRoute) -> None:
    await socket.close(code=1008, reason="not allowed")

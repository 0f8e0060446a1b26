"""The real browser: one Chromium context behind the same actions and the same lines as the light browser."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from playwright.async_api import ElementHandle, JSHandle, Page
from playwright.async_api import Error as PlaywrightError

from envs.web.browser import MAX_TABS, View, check_key, fillable, option_of
from envs.web.chromium_context import ACT_S, SETTLE_S, Context
from envs.web.chromium_host import ASGI
from envs.web.elements import attributes
from envs.web.loop import shared
from envs.web.origin import origin_of, resolve
from envs.web.pages import Element, read_page
from envs.web.pages import Page as Lines
from tools.errors import ToolError

LIMITS: dict[str, Any] = {"nodes": 20_000, "html": 1 << 20, "value": 10_000}


@cache
def _reflect() -> str:
    return (Path(__file__).parent / "reflect.js").read_text(encoding="utf-8")


class ChromiumBrowser:
    """One episode's browser. Whatever a page does, crash included, is the model's observation."""

    def __init__(
        self,
        app: ASGI,
        *,
        now: str,
        cookies: dict[str, str] | None = None,
        clickable: bool = False,
        except_in: str = "head",
        scripts: tuple[str, ...] = (),
        pictures: str = "",
    ) -> None:
        """Nothing runs before `open`.

        Args:
            app: answers the requests of the origin.
            now: what the page's clock shows, as ISO text.
            cookies: of the origin, from the start.
            clickable: whether elements under a pointing hand, texts and shapes count as elements to act on.
            except_in: a CSS selector of what such elements must not stand in.
            scripts: run in every page before its own.
            pictures: a folder for one screenshot a view; empty for none.
        """
        self._app, self._now, self._cookies, self._scripts = app, now, cookies or {}, scripts
        self._limits = {**LIMITS, "clickable": clickable, "except": except_in}
        self._pictures, self._taken = pictures, 0
        self._open_context: Context | None = None
        self._home = ""
        self._tabs: list[Page] = []
        self._active = 0
        self._nodes: JSHandle | None = None
        self._elements: tuple[Element, ...] = ()

    # --------------------------------------------------------------------------------------------- life

    def open(self, url: str) -> None:
        """Begin at this address."""
        shared().run(self._open(url))

    async def _open(self, url: str) -> None:
        self._home = url
        self._open_context = await Context.make(
            self._app, url, now=self._now, cookies=self._cookies, scripts=self._scripts
        )
        with contextlib.suppress(ToolError):  # a first page that does not load is shown as such
            await self._act(lambda: self._new_tab(url))

    @property
    def _context(self) -> Context:
        if self._open_context is None:
            raise RuntimeError("the browser is used before open or after close")
        return self._open_context

    async def _new_tab(self, url: str) -> None:
        page = await self._context.new_page()
        self._tabs.append(page)
        self._active = len(self._tabs) - 1
        await page.goto(url, timeout=SETTLE_S * 1000)

    def copy(self) -> None:
        """A real browser cannot be copied: its episodes are replayed."""

    def close(self) -> None:
        """Close the context."""
        context, self._open_context = self._open_context, None
        if context is not None:
            shared().run(context.leave())

    # ------------------------------------------------------------------------------------------- reading

    def view(self) -> View:
        """What is open now."""
        return shared().run(self._view())

    async def _view(self) -> View:
        page = self._page
        lines = await self._read(page)
        if self._pictures and page not in self._context.crashed:
            await self._photograph(page)
        titles = [lines.title if tab is page else await self._title(tab) for tab in self._tabs]
        return View(url=page.url.partition("#")[0], page=lines, tabs=tuple(titles), active=self._active)

    async def _title(self, tab: Page) -> str:
        try:
            title = await self._context.timed(tab.title(), tab, ACT_S)
        except ToolError:
            title = ""
        return title or tab.url

    async def _read(self, page: Page) -> Lines:
        self._elements, self._nodes = (), None
        if page in self._context.crashed:
            return Lines(title="", lines=("(the page crashed)",), elements=())
        try:
            found = await self._context.evaluate(page, _reflect(), self._limits)
            html = await self._context.timed(found.evaluate("(found) => found.html"), page, ACT_S)
        except ToolError as error:
            return Lines(title="", lines=(f"(the page cannot be read: {error})",), elements=())
        self._nodes, lines = found, read_page(str(html))
        self._elements = lines.elements
        return lines

    async def _photograph(self, page: Page) -> None:
        self._taken += 1
        path = Path(self._pictures, f"{self._taken:04d}.png")
        with contextlib.suppress(ToolError):  # for people only: nothing depends on it
            await self._context.timed(page.screenshot(path=path), page, ACT_S)

    def ask(self, code: str, argument: Any = None) -> Any:
        """What a function of ours returns in the page in front: for the judge, never for the agent.

        Raises:
            ToolError: the page does not answer.
        """

        async def ask() -> Any:
            handle = await self._context.evaluate(self._page, code, argument)
            return await self._context.timed(handle.json_value(), self._page, ACT_S)

        return shared().run(ask())

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
        here = self._page.url
        target = resolve(here if origin_of(here) == origin_of(self._home) else self._home, url)
        self._do(lambda: self._goto(target))

    async def _goto(self, url: str) -> None:
        if self._page in self._context.crashed:
            gone, number = self._page, self._active
            with contextlib.suppress(PlaywrightError):
                await gone.close()
            await self._new_tab(url)
            self._tabs[number] = self._tabs.pop()
            self._active = number
            return
        for left in (2, 1, 0):
            try:
                await self._page.goto(url, timeout=SETTLE_S * 1000)
                return
            except PlaywrightError as error:
                if "interrupted by another navigation" not in error.message or left == 0:
                    raise
            # the browser's own error page, of the address asked for before, arrives late
            await self._context.settle(self._page)

    def back(self) -> None:
        """Open the page before this one."""

        async def back() -> None:
            if await self._page.evaluate("() => navigation.currentEntry.index") < 1:
                raise ToolError("there is no page before this one")
            await self._page.go_back(timeout=SETTLE_S * 1000)

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
            await self._context.timed(act(), self._page if self._tabs else None)
        finally:
            if self._tabs:
                await self._context.settle(self._page)

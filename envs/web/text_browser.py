"""A light browser: HTML and forms, no scripts, no pictures. Deterministic, in process, its state can be copied."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urljoin

from selectolax.lexbor import LexborNode

from envs.web import forms
from envs.web.browser import MAX_TABS, View, check_key, fillable, option_of
from envs.web.elements import attributes, clean, kind_of
from envs.web.fetch import Transport, load
from envs.web.loop import shared
from envs.web.origin import resolve
from envs.web.pages import Element, Page, read_page
from tools.errors import ToolError

MAX_HISTORY = 50


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: address and reflected HTML of its page, and of the pages before it."""

    url: str
    html: str
    before: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TextState:
    """Everything that the browser remembers."""

    tabs: tuple[Tab, ...]
    active: int
    cookies: tuple[tuple[str, str], ...] = field(repr=False)


_BLANK = "<title>Blank</title>"


class TextBrowser:
    """Talks to one origin through a transport: an application in process, or a socket."""

    def __init__(self, transport: Transport, *, cookies: dict[str, str] | None = None) -> None:
        self._transport = transport
        self._state = TextState(tabs=(), active=0, cookies=tuple(sorted((cookies or {}).items())))
        self._home = ""
        self._page: Page | None = None

    # --------------------------------------------------------------------------------------------- state

    def open(self, url: str) -> None:
        """Begin at this address."""
        self._home = url
        self._state = replace(self._state, tabs=(Tab(url=url, html=_BLANK),), active=0)
        self._load("GET", url, None, remember=False)

    def view(self) -> View:
        """What is open now."""
        tabs = tuple(clean(forms.title_of(tab.html)) or tab.url for tab in self._state.tabs)
        return View(url=self._tab.url, page=self._read(), tabs=tabs, active=self._state.active)

    def copy(self) -> TextState:
        """Tabs, pages with what is typed in them, cookies."""
        return self._state

    def load(self, state: TextState, home: str) -> None:
        """Continue from `copy`."""
        self._state, self._home, self._page = state, home, None

    def close(self) -> None:
        """Nothing is held."""

    @property
    def _tab(self) -> Tab:
        return self._state.tabs[self._state.active]

    def _show(self, tab: Tab) -> None:
        tabs = list(self._state.tabs)
        tabs[self._state.active] = tab
        self._state = replace(self._state, tabs=tuple(tabs))
        self._page = None

    def _read(self) -> Page:
        if self._page is None:
            self._page = read_page(self._tab.html)
        return self._page

    def _element(self, number: int) -> Element:
        elements = self._read().elements
        if not 1 <= number <= len(elements):
            raise ToolError(f"elements are numbered 1 to {len(elements)} on this page, got {number}")
        element = elements[number - 1]
        if "disabled" in attributes(element.node):
            raise ToolError(f"element {number} is disabled")
        return element

    def _changed(self, node: LexborNode) -> None:
        """The page was changed in place: keep it as HTML."""
        self._show(replace(self._tab, html=forms.document_of(node)))

    # ------------------------------------------------------------------------------------------- actions

    def click(self, element: int) -> None:
        """Follow a link, submit by a button, tick a box."""
        found = self._element(element)
        node = found.node
        if node.tag == "a" and "href" in attributes(node):
            self._load(
                "GET",
                resolve(urljoin(self._tab.url, forms.base_of(node)), attributes(node)["href"] or ""),
                None,
            )
        elif found.role == "button" and node.tag in ("button", "input"):
            self._press_button(node)
        elif found.role in ("checkbox", "radio") and node.tag == "input":
            forms.tick(node)
            self._changed(node)

    def _press_button(self, node: LexborNode) -> None:
        kind = attributes(node).get("type", "submit").lower() if node.tag == "button" else kind_of(node)
        if kind in ("submit", "image", ""):
            self._submit(node, node)

    def _submit(self, node: LexborNode, button: LexborNode | None) -> None:
        request = forms.submission(node, button, self._tab.url)
        if request is not None:
            method, url, data = request
            self._load(method, resolve(self._tab.url, url), data)

    def fill(self, element: int, text: str) -> None:
        """Replace the text of a field."""
        found = self._element(element)
        forms.set_value(found.node, fillable(found, text))
        self._changed(found.node)

    def select(self, element: int, option: str) -> None:
        """Choose an option by its text."""
        found = self._element(element)
        forms.choose(found.node, option_of(found, option))
        self._changed(found.node)

    def press(self, element: int, key: str) -> None:
        """Enter submits a form from a field and clicks a link or button; Space clicks; other keys do nothing."""
        check_key(key)
        found = self._element(element)
        field_of_form = found.role in ("textbox", "checkbox", "radio") and found.node.tag == "input"
        if key == "Enter" and field_of_form:
            button = forms.default_button(found.node)
            if button is not None or forms.text_fields(found.node) == 1:
                self._submit(found.node, button)
        elif (key == "Enter" and found.role in ("link", "button")) or (
            key == "Space" and found.role in ("button", "checkbox", "radio")
        ):
            self.click(element)

    def goto(self, url: str) -> None:
        """Open an address of the same origin."""
        self._load("GET", resolve(self._tab.url, url), None)

    def back(self) -> None:
        """Show the page before this one, as it was left."""
        if not self._tab.before:
            raise ToolError("there is no page before this one")
        *rest, (url, html) = self._tab.before
        self._show(Tab(url=url, html=html, before=tuple(rest)))

    def tab(self, action: str, index: int) -> None:
        """Open, switch to, or close a tab."""
        tabs = self._state.tabs
        if action == "new":
            if len(tabs) >= MAX_TABS:
                raise ToolError(f"at most {MAX_TABS} tabs can be open")
            self._state = replace(
                self._state, tabs=(*tabs, Tab(url=self._home, html=_BLANK)), active=len(tabs)
            )
            self._load("GET", self._home, None, remember=False)
            return
        if not 0 <= index < len(tabs):
            raise ToolError(f"tabs are numbered 0 to {len(tabs) - 1}, got {index}")
        active = index
        if action == "close":
            if len(tabs) == 1:
                raise ToolError("the last tab cannot be closed")
            tabs = tabs[:index] + tabs[index + 1 :]
            active = self._state.active - (self._state.active >= index and self._state.active > 0)
        self._state, self._page = replace(self._state, tabs=tabs, active=active), None

    # -------------------------------------------------------------------------------------------- network

    def _load(self, method: str, url: str, data: bytes | None, *, remember: bool = True) -> None:
        found = shared().run(load(self._transport, method, url, data, dict(self._state.cookies)))
        self._state = replace(self._state, cookies=tuple(sorted(found.cookies.items())))
        before = self._tab.before
        if remember:
            before = (*before, (self._tab.url, self._tab.html))[-MAX_HISTORY:]
        self._show(Tab(url=found.url, html=found.html, before=before))

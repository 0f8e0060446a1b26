"""The light browser against small applications of the test's own."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from envs.web.browser import MAX_TABS
from envs.web.text_browser import TextBrowser
from tools.errors import ToolError

HOME = """<title>Home</title><a href="/next">next</a><a href="http://other.test/">out</a><a href="javascript:x()">js</a>
<form method=post action=/echo><input name=a value=1><input name=b type=hidden value=2>
<input type=checkbox name=c value=3><input type=radio name=d value=4 checked><input type=radio name=d value=5>
<select name=e><option>x<option value=7>y</select><textarea name=f>old</textarea><input name=g disabled value=8>
<button name=h value=9>Send</button><button name=h value=10>Other</button></form>
<form action=/query><input name=q></form>"""


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    async def home() -> Response:
        return HTMLResponse(HOME)

    @app.post("/echo")
    async def echo(request: Request) -> Response:
        return HTMLResponse(f"<title>Echo</title><p>{(await request.body()).decode()}</p>")

    @app.get("/query")
    async def query(request: Request) -> Response:
        return HTMLResponse(f"<title>Query</title><p>{request.url.query}</p>")

    @app.get("/next")
    async def after() -> Response:
        return RedirectResponse("/query?from=next", status_code=302)

    @app.get("/away")
    async def away() -> Response:
        return RedirectResponse("http://other.test/", status_code=302)

    @app.get("/loop")
    async def loop() -> Response:
        return RedirectResponse("/loop", status_code=302)

    @app.get("/set")
    async def keep(request: Request) -> Response:
        response = HTMLResponse(f"<p>cookie {request.headers.get('cookie', 'none')}</p>")
        response.set_cookie("k", "v")
        return response

    @app.get("/binary")
    async def binary() -> Response:
        return Response(b"\x00\x01" * 100, media_type="image/png")

    @app.get("/huge")
    async def huge() -> Response:
        return HTMLResponse("<p>" + "x" * 5_000_000)

    @app.get("/odd")
    async def odd() -> Response:
        return Response(b"<p>\xff\xfe", headers={"content-type": "text/html; charset=base64"})

    return app


@pytest.fixture
def browser() -> TextBrowser:
    app = application()
    made = TextBrowser(lambda: httpx.ASGITransport(app=app))
    made.open("http://site.test/")
    return made


def number(browser: TextBrowser, role: str, name: str) -> int:
    return next(e.number for e in browser.view().page.elements if (e.role, e.name) == (role, name))


def text(browser: TextBrowser) -> str:
    return "\n".join(browser.view().page.lines)


def test_a_form_sends_its_successful_controls_in_order(browser: TextBrowser) -> None:
    browser.fill(number(browser, "textbox", "a"), "ä &")
    browser.click(number(browser, "checkbox", "c"))
    browser.click([e.number for e in browser.view().page.elements if e.role == "radio"][1])
    browser.select(number(browser, "combobox", "e"), "y")
    browser.fill(number(browser, "textbox", "f"), "one\ntwo")
    browser.click(number(browser, "button", "Other"))
    assert text(browser) == "a=%C3%A4+%26&b=2&c=3&d=5&e=7&f=one%0D%0Atwo&h=10"


def test_a_hidden_field_cannot_be_filled(browser: TextBrowser) -> None:
    assert not any(e.name == "b" for e in browser.view().page.elements)
    with pytest.raises(ToolError, match="disabled"):
        browser.fill(number(browser, "textbox", "g"), "1")


def test_enter_submits_and_redirects_are_followed(browser: TextBrowser) -> None:
    browser.fill(number(browser, "textbox", "q"), "w x")
    browser.press(number(browser, "textbox", "q"), "Enter")
    assert (browser.view().url, text(browser)) == ("http://site.test/query?q=w+x", "q=w+x")
    browser.back()
    assert '= "w x"' in text(browser)
    browser.click(number(browser, "link", "next"))
    assert browser.view().url == "http://site.test/query?from=next"


@pytest.mark.parametrize(
    "act",
    [
        lambda b: b.click(number(b, "link", "out")),
        lambda b: b.click(number(b, "link", "js")),
        lambda b: b.goto("/away"),
        lambda b: b.goto("/loop"),
        lambda b: b.goto("http://site.test:81/"),
        lambda b: b.click(0),
        lambda b: b.click(10**9),
        lambda b: b.fill(number(b, "link", "next"), "x"),
        lambda b: b.select(number(b, "combobox", "e"), "z"),
        lambda b: b.press(1, "F12"),
        lambda b: b.press(1, "Control+U"),
        lambda b: b.back(),
        lambda b: b.tab("switch", 1),
        lambda b: b.tab("close", 0),
        lambda b: b.fill(number(b, "textbox", "a"), "x" * 20_000),
    ],
)
def test_what_cannot_be_done_is_answered_and_leaves_the_page(
    browser: TextBrowser, act: Callable[[TextBrowser], None]
) -> None:
    with pytest.raises(ToolError):
        act(browser)
    assert browser.view().url == "http://site.test/"


def test_tabs_are_few_and_keep_their_pages(browser: TextBrowser) -> None:
    browser.goto("/query?a")
    browser.tab("new", 0)
    assert (browser.view().url, browser.view().tabs) == ("http://site.test/", ("Query", "Home"))
    browser.tab("switch", 0)
    assert browser.view().url == "http://site.test/query?a"
    browser.tab("close", 0)
    assert browser.view().tabs == ("Home",)
    for _ in range(MAX_TABS - 1):
        browser.tab("new", 0)
    with pytest.raises(ToolError, match="at most"):
        browser.tab("new", 0)


def test_cookies_are_kept_and_copied(browser: TextBrowser) -> None:
    browser.goto("/set")
    state = browser.copy()
    app = application()
    other = TextBrowser(lambda: httpx.ASGITransport(app=app))
    other.load(state, "http://site.test/")
    other.goto("/set")
    assert text(other) == "cookie k=v"
    assert browser.copy() == state


def test_files_huge_pages_and_odd_charsets_are_bounded(browser: TextBrowser) -> None:
    browser.goto("/binary")
    assert text(browser) == "(a file of type image/png: not shown)"
    browser.goto("/huge")
    assert len(text(browser)) < 10_000
    browser.goto("/odd")
    assert len(browser.view().page.lines) == 1

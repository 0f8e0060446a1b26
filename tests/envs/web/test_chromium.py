"""The real browser: the same lines as the light one on the sites, and pages that attack it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from envs import registry
from envs.checker.subject import play
from envs.policies import call
from envs.web.attacks import ATTACKS
from envs.web.tasks import generate
from sandbox.errors import SandboxUnavailable
from tools.errors import ToolError

pytest.importorskip("playwright", reason="needs pip install 'agent-rl[web]'")

from envs.web import chromium_host
from envs.web.chromium import ChromiumBrowser
from envs.web.chromium_launch import find_chromium

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

PAGES = {
    "/": "<title>Home</title><a href=/next>next</a>",
    "/next": "<title>Next</title><p>here",
    "/alert": "<title>Alert</title><script>alert(1);confirm(2)</script><p>after",
    "/loop": "<title>Loop</title><p>x<script>setTimeout(() => {for(;;){}}, 300)</script>",
    "/crash": "<title>Crash</title><p>x"
    "<script>setTimeout(() => {let a=[];for(;;)a.push(new Array(1e7).fill(1.5))}, 100)</script>",
    "/popup": "<title>Popup</title><a href=/next target=_blank>open</a>"
    "<button onclick=\"window.open('/next')\">w</button>",
    "/out": """<title>Out</title><p id=p>start</p><script>
      const say = (t) => p.textContent += ' ' + t;
      (async () => {
        for (const u of ['http://127.0.0.1:8000/', 'http://other.test/', 'http://x.test:8000/', 'https://x.test/'])
          await fetch(u, {mode: 'no-cors'}).then(() => say('REACHED'), () => say('refused'));
        await new Promise(r => { const s = new WebSocket('ws://x.test/');
          s.onopen = () => { say('open'); r() }; s.onclose = () => { say('shut'); r() } });
        await navigator.serviceWorker.register('/sw.js').then(() => say('WORKER'), () => say('noworker'));
      })()</script>""",
    "/clock": """<title>Clock</title><p id=p></p><script>
      p.textContent = [new Date().toISOString(), Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language,
        innerWidth + 'x' + innerHeight].join(' ')</script>""",
    "/live": """<title>Live</title><input id=i aria-label=Name><p id=p></p>
      <div id=d style='cursor:pointer'>press me</div>
      <script>i.oninput = () => p.textContent = 'typed ' + i.value;
      d.onclick = () => p.textContent = 'pressed'</script>""",
}


def application() -> FastAPI:
    app = FastAPI()

    def add(path: str, html: str) -> None:
        @app.get(path)
        async def page() -> Response:
            return HTMLResponse(html)

    for path, html in PAGES.items():
        add(path, html)

    @app.get("/file")
    async def file() -> Response:
        return Response(b"x", headers={"content-disposition": "attachment; filename=x.bin"})

    @app.get("/away")
    async def away() -> Response:
        return RedirectResponse("http://other.test/")

    return app


@pytest.fixture(scope="module", autouse=True)
def chromium() -> Iterator[None]:
    try:
        find_chromium()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    yield
    chromium_host.close_all()


@pytest.fixture
def make() -> Iterator[Callable[..., ChromiumBrowser]]:
    made: list[ChromiumBrowser] = []

    def one(app: Callable[[Any, Any, Any], Awaitable[None]] | None = None, **options: Any) -> ChromiumBrowser:
        browser = ChromiumBrowser(app or application(), now="2024-06-15T09:00:00", **options)
        made.append(browser)
        browser.open("http://x.test/")
        return browser

    yield one
    for browser in made:
        browser.close()


def text(browser: ChromiumBrowser) -> str:
    return "\n".join(browser.view().page.lines)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_same_episode_shows_the_same_lines_in_both_browsers(level: int) -> None:
    for task in generate("test", 3, 0, level=level):
        lines = []
        for kind in ("text", "chromium"):
            env = registry.make("web-v1", browser=kind)
            seen = play(env, type(env).policies()["gold"].make(task, 0), task)
            assert seen.score == 1
            lines.append(seen.lines())
            env.close()
        assert lines[0] == lines[1]


@pytest.mark.parametrize("attack", sorted(set(ATTACKS) - {"stall"}))
def test_attacks_score_nothing(attack: str) -> None:
    (task,) = generate("test", 1, 0, level=1)
    env = registry.make("web-v1", browser="chromium")
    assert play(env, type(env).policies()[attack].make(task, 0), task).score == 0
    env.close()


def test_an_episode_forks_by_verified_replay() -> None:
    (task,) = generate("train", 1, 0)
    env = registry.make("web-v1", browser="chromium")
    env.reset(options={"task": task})
    env.step(call("goto", url="/login"))
    assert env.snapshot().state is None
    fork = env.fork()
    assert env.step(call("finish")).reward == fork.step(call("finish")).reward == 0
    fork.close()
    env.close()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "view-source:http://x.test/",
        "chrome://version",
        "javascript:1",
        "http://x.test:8000/",
    ],
)
def test_only_the_origin_can_be_opened(make: Callable[..., ChromiumBrowser], url: str) -> None:
    browser = make()
    with pytest.raises(ToolError):
        browser.goto(url)
    assert browser.view().url == "http://x.test/"


def test_a_page_reaches_nothing_but_its_own_origin(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make()
    browser.goto("/out")
    for _ in range(50):
        if "worker" in text(browser).lower():
            break
    shown = text(browser)
    assert "REACHED" not in shown
    assert "WORKER" not in shown
    assert shown.count("refused") == 4
    assert "open" not in shown


def test_a_redirect_out_of_the_origin_ends_in_an_error(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make()
    with pytest.raises(ToolError):
        browser.goto("/away")
    browser.goto("/next")
    assert browser.view().page.title == "Next"


def test_popups_downloads_and_dialogs_do_not_stay(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make()
    browser.goto("/popup")
    browser.view()
    browser.click(1)
    browser.view()
    browser.click(2)
    assert len(browser.view().tabs) == 1
    browser.goto("/alert")
    assert "after" in text(browser)
    with pytest.raises(ToolError):
        browser.goto("/file")


def test_clock_zone_language_and_size_are_fixed(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make()
    browser.goto("/clock")
    assert text(browser) == "2024-06-15T09:00:00.000Z UTC en-GB 1000x800"


def test_scripts_see_what_is_typed_and_pressed(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make(clickable=True)
    browser.goto("/live")
    browser.view()
    browser.fill(1, "abc")
    assert "typed abc" in text(browser)
    number = re.search(r'\[(\d+)\] clickable "press me"', text(browser))
    assert number is not None
    browser.click(int(number[1]))
    assert "pressed" in text(browser)


def test_a_page_that_hangs_is_an_observation(make: Callable[..., ChromiumBrowser]) -> None:
    browser = make()
    browser.goto("/loop")
    asyncio.run(asyncio.sleep(0.5))
    assert "cannot be read" in text(browser)


def test_a_page_that_crashes_is_an_observation_and_can_be_left(make: Callable[..., ChromiumBrowser]) -> None:
    browser, other = make(), make()
    browser.goto("/crash")
    for _ in range(40):
        if "crashed" in text(browser):
            break
        asyncio.run(asyncio.sleep(0.25))
    assert text(browser) == "(the page crashed)"
    with pytest.raises(ToolError, match="numbered 1 to 0"):
        browser.click(1)
    browser.goto("/next")
    assert browser.view().page.title == "Next"
    assert other.view().page.title == "Home"


def test_one_episode_cannot_reach_the_server_of_another(make: Callable[..., ChromiumBrowser]) -> None:
    async def secret(scope: Any, receive: Any, send: Any) -> None:
        await HTMLResponse("<title>Secret</title>")(scope, receive, send)

    first, second = make(secret), make()
    assert first.view().page.title == "Secret"
    assert second.view().page.title == "Home"


def test_screenshots_are_kept_for_people(make: Callable[..., ChromiumBrowser], tmp_path: Path) -> None:
    browser = make(pictures=str(tmp_path))
    browser.view()
    assert [p.read_bytes()[:4] for p in tmp_path.glob("*.png")] == [b"\x89PNG"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can drop to another user id")
def test_chromium_runs_unprivileged_without_network(make: Callable[..., ChromiumBrowser]) -> None:
    make()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "exe").endswith("/chromium"):
                    status = dict(
                        line.split(":\t")
                        for line in (entry / "status").read_text().splitlines()
                        if ":\t" in line
                    )
                    found.append((status["Uid"].split()[0], status["CapEff"], os.readlink(entry / "ns/net")))
            except OSError:
                continue
    assert found
    assert all(uid not in ("0",) and int(caps, 16) == 0 for uid, caps, _ in found)
    assert os.readlink("/proc/self/ns/net") not in {net for _, _, net in found}

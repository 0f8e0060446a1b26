"""MiniWoB++ pages in the real browser: golds by the listed tools alone, paid by the highest raw reward only."""

from __future__ import annotations

import contextlib

import pytest

from envs import registry
from envs.checker.subject import play
from envs.policies import ScriptedPolicy, call
from envs.web.env import WebEnv
from envs.web.miniwob_pages import Seen
from envs.web.miniwob_tasks import EXCLUDED, GOLDS
from sandbox.errors import SandboxUnavailable

pytest.importorskip("playwright", reason="needs pip install 'agent-rl[web]'")
pytest.importorskip("miniwob", reason="needs pip install 'agent-rl[web]'")

from envs.web.chromium_launch import find_chromium
from envs.web.miniwob import folder, generate

SAMPLE = (
    "click-button",
    "enter-text",
    "choose-list",
    "email-inbox-reply",
    "search-engine",
    "choose-date-easy",
)


@pytest.fixture(scope="module")
def chromium() -> None:
    try:
        find_chromium()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


def solved(name: str, n: int) -> list[float]:
    spec = WebEnv.policies()["gold"]
    with contextlib.closing(registry.make("web-v1", browser="chromium")) as env:
        return [play(env, spec.make(task, 0), task).score for task in generate("test", n, 0, name=name)]


def test_every_page_is_played_or_left_out_for_a_reason() -> None:
    pages = {path.stem for path in (folder() / "miniwob").glob("*.html")}
    assert not GOLDS.keys() & EXCLUDED.keys()
    assert GOLDS.keys() | EXCLUDED.keys() == pages
    assert len(GOLDS) >= 60
    with pytest.raises(ValueError, match="mouse to drag"):
        WebEnv.tasks("test", 1, 0, site="miniwob", name="drag-box")


def test_a_page_is_read_back() -> None:
    seen = Seen(
        'page: a\naddress: b\n\nPress "Go".\n[1] button "Go" [2] checkbox "x" checked\n[3] textbox "N" = "v"'
    )
    assert (seen.wanted, seen.quoted()) == ('Press "Go".', ["Go"])
    assert [(i.number, i.role, i.name, i.value, i.checked) for i in seen.items] == [
        (1, "button", "Go", "", False),
        (2, "checkbox", "x", "", True),
        (3, "textbox", "N", "v", False),
    ]


def test_the_light_browser_refuses_such_a_task() -> None:
    from envs.types import FaultError

    (task,) = generate("test", 1, 0, name="click-test")
    with pytest.raises(FaultError, match="browser='chromium'") as caught:
        WebEnv().reset(options={"task": task})
    assert caught.value.fault.kind == "task"


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", SAMPLE)
def test_gold_gets_through(chromium: None, name: str) -> None:
    assert solved(name, 2) == [1.0, 1.0]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", sorted(GOLDS))
def test_gold_gets_through_every_page(chromium: None, name: str) -> None:
    assert solved(name, 3) == [1.0, 1.0, 1.0]


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("attack", ["run-script", "view-source", "local-files", "other-origins", "forge"])
def test_attacks_on_a_page_score_nothing(chromium: None, attack: str) -> None:
    (task,) = generate("test", 1, 0, name="enter-text")
    with contextlib.closing(registry.make("web-v1", browser="chromium")) as env:
        assert play(env, WebEnv.policies()[attack].make(task, 0), task).score == 0.0


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_second_try_is_not_paid(chromium: None) -> None:
    (task,) = generate("test", 1, 0, name="click-test-2")
    again = [call("goto", url="/miniwob/click-test-2.html"), call("click", element=1), call("finish")]
    wrong = [call("click", element=2), call("click", element=1)]
    with contextlib.closing(registry.make("web-v1", browser="chromium")) as env:
        assert [play(env, ScriptedPolicy(each), task).score for each in (wrong, again)] == [0.0, 0.0]


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_page_is_restored_by_replay(chromium: None) -> None:
    (task,) = generate("test", 1, 0, name="enter-password")
    env = registry.make("web-v1", browser="chromium")
    env.reset(options={"task": task})
    env.step(call("fill", element=1, text="abc"))
    snapshot = env.snapshot()
    other = env.restore(snapshot)
    shown = [e.step(call("fill", element=2, text="d")).observation[0]["content"] for e in (env, other)]
    assert shown[0] == shown[1]
    assert '= "***"' in shown[0]
    env.close()
    other.close()

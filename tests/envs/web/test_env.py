from __future__ import annotations

import json

import pytest

from envs import registry
from envs.checker import check
from envs.checker.subject import play
from envs.policies import call, calls
from envs.web.attacks import ATTACKS
from envs.web.browser import HOME_LINES
from envs.web.tasks import generate


def test_the_first_page_stands_at_the_end_of_the_prompt() -> None:
    env = registry.make("web-v1")
    (task,) = generate("train", 1, 0)
    messages, _ = env.reset(options={"task": task})
    assert messages[-1]["content"].startswith(task.prompt[-1]["content"])
    assert "address: http://" in messages[-1]["content"]
    names = [schema["name"] for schema in env.tools]
    assert sorted(names) == sorted(
        ["click", "fill", "select", "press", "scroll", "goto", "back", "tab", "send_message", "finish"]
    )
    env.close()


def test_observations_are_windows_that_scroll() -> None:
    env = registry.make("web-v1")
    (task,) = generate("train", 1, 0, level=2, site="wiki")
    env.reset(options={"task": task})
    seen = env.step(call("scroll", direction="down")).observation[0]["content"]
    assert len(seen) < 8000
    assert len(seen.splitlines()) <= HOME_LINES + 6
    env.close()


@pytest.mark.parametrize("attack", sorted(ATTACKS))
@pytest.mark.parametrize("site", ["shop", "tracker", "wiki"])
def test_attacks_score_nothing(attack: str, site: str) -> None:
    env = registry.make("web-v1")
    policy = type(env).policies()[attack]
    for level in (0, 2):
        (task,) = generate("test", 1, 0, level=level, site=site)
        assert play(env, policy.make(task, 0), task).score == 0
    env.close()


def test_hidden_fields_reach_no_tool() -> None:
    env = registry.make("web-v1")
    (task,) = generate("train", 1, 0, site="shop")
    _messages, _ = env.reset(options={"task": task})
    seen = env.step(call("goto", url="/product/1")).observation[0]["content"]
    assert "cents" not in seen
    assert "product_id" not in seen
    env.close()


def test_a_fork_buys_nothing_for_its_parent() -> None:
    env = registry.make("web-v1")
    (task,) = generate("train", 1, 0, site="shop")
    gold = type(env).policies()["gold"].make(task, 0)
    messages, _ = env.reset(options={"task": task})
    fork = env.fork()
    said = list(messages)
    while not fork.over:
        action = gold.act(said, fork.tools)
        step = fork.step(action)
        said += [action, *step.observation]
    assert step.reward == 1
    assert env.step(call("finish")).reward == 0
    fork.close()
    env.close()


def test_messages_are_bounded_and_change_nothing() -> None:
    env = registry.make("web-v1")
    (task,) = generate("train", 1, 0)
    env.reset(options={"task": task})
    key = env.step(call("send_message", text="x" * 100_000)).info["state_key"]
    step = env.step(calls(*(("send_message", {"text": "x"}) for _ in range(60))))
    assert step.observation[-1]["content"].startswith("error: at most")
    assert step.info["state_key"] == key
    env.close()


def test_the_answer_is_only_a_draw() -> None:
    for task in generate("train", 6, 0, level=3):
        assert set(task.answer) == {"plan", "draw"}
        assert "password" not in json.dumps(dict(task.data))


@pytest.mark.slow
def test_the_checker_is_green() -> None:
    report = check("web-v1")
    assert report.passed, report.text()

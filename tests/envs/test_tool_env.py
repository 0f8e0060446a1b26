from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from envs.policies import call, calls, say
from envs.tool_env import ToolEnv
from envs.types import FaultError, Task
from tests.envs.toys.sums import Sums, make_task
from tools.errors import ToolError
from tools.schema import tool
from tools.types import Message


def started(env: ToolEnv) -> ToolEnv:
    env.reset(options={"task": make_task(type(env).id, "train", 3)})
    return env


def contents(messages: list[Message]) -> list[str]:
    return [m["content"] for m in messages]


def test_calls_of_a_turn_run_in_order_and_turn_rewards_stay_turn_rewards() -> None:
    env = started(Sums())
    numbers = env.task.data["numbers"]
    step = env.step(calls(("read", {"index": 1}), ("read", {"index": 0})))
    assert contents(step.observation) == [str(numbers[1]), str(numbers[0])]
    assert [(m["role"], m["tool_call_id"], m["name"]) for m in step.observation] == [
        ("tool", "call_0", "read"),
        ("tool", "call_1", "read"),
    ]
    assert step.reward == pytest.approx(0.2)
    assert [c.scope for c in step.info["reward"].components] == ["turn", "turn"]
    assert step.info["state_key"] == "0 notes"
    assert env.step(call("note", text="x")).reward == 0.0


def test_finish_ends_the_episode_and_later_calls_do_not_run() -> None:
    env = started(Sums())
    step = env.step(calls(("submit", {"text": env.task.answer}), ("note", {"text": "late"})))
    assert contents(step.observation) == ["received", "error: not run, the episode had already ended"]
    assert (step.terminated, step.truncated, step.info["stop"], step.reward) == (
        True,
        False,
        "submitted",
        1.0,
    )
    env.reset(options={"task": env.task})
    assert not env.step(call("note", text="fresh")).terminated


def test_calls_that_would_start_too_late_in_a_turn_are_not_run() -> None:
    class Slow(Sums):
        turn_time_s = 0.05

        @tool
        def wait(self) -> None:
            """Wait longer than the calls of a turn may take together."""
            time.sleep(0.06)

    env = started(Slow())
    step = env.step(
        calls(("wait", {}), *[("note", {"text": "x"})] * 50, ("submit", {"text": env.task.answer}))
    )
    late = "error: not run, the calls of this turn took more than 0.05 s; call again"
    assert contents(step.observation) == ["ok", *[late] * 51]
    assert not step.terminated
    assert step.info["state_key"] == "0 notes"
    assert env.step(call("submit", text=env.task.answer)).reward == 1.0


def test_a_turn_without_a_call_ends_or_reminds() -> None:
    step = started(Sums()).step("The sum is 3.")
    assert (step.observation, step.terminated, step.info["stop"]) == ([], True, "no_tool_call")

    class Reminds(Sums):
        on_no_tool_call = "remind"

    step = started(Reminds()).step("Hm.")
    assert not step.terminated
    assert contents(step.observation) == [
        "error: every turn needs a tool call; the tools are: read, note, submit"
    ]


def test_the_models_mistakes_are_observations() -> None:
    env = started(Sums())
    step = env.step({"role": "assistant", "content": "", "parse_errors": ["no JSON", "no name"]})
    assert step.observation == [{"role": "user", "content": "error: no JSON\nerror: no name"}]
    assert not step.terminated
    step = env.step(calls(("reed", {"index": 0}), ("read", {"index": "zero"}), ("read", {"index": 9})))
    assert all(c.startswith("error: ") for c in contents(step.observation))
    assert "read" in step.observation[0]["content"]
    assert "index is from 0 to 2, got 9" in step.observation[2]["content"]


def test_plain_text_is_parsed_as_hermes() -> None:
    env = started(Sums())
    step = env.step('<tool_call>\n{"name": "read", "arguments": {"index": 0}}\n</tool_call>')
    assert contents(step.observation) == [str(env.task.data["numbers"][0])]


def test_long_output_is_clipped_and_can_be_read_further_also_after_a_fork() -> None:
    class Long(Sums):
        read_more = True

        @tool
        def dump(self) -> str:
            """Print a lot."""
            return "a" * 10_000 + "b" * 10_000

    assert [t["name"] for t in started(Sums()).tools] == ["read", "note", "submit"]
    env = started(Long())
    assert [t["name"] for t in env.tools] == ["read", "note", "submit", "dump", "read_more"]
    text = env.step(call("dump")).observation[0]["content"]
    assert len(text) <= 8000
    assert text.startswith("a")
    assert text.endswith("b")
    assert 'handle="out1"' in text
    snapshot = env.snapshot()
    assert snapshot.state is not None
    for each in (env, env.restore(snapshot)):
        assert "bbb" in each.step(call("read_more", handle="out1", offset=12_000)).observation[0]["content"]


def test_a_tool_that_outlasts_its_limit_is_interrupted_and_becomes_a_deadline() -> None:
    released = threading.Event()

    class Stuck(Sums):
        tool_timeout_s = 0.05

        @tool
        def wait(self) -> str:
            """Wait for long."""
            released.wait(10)
            return "late"

        def interrupt(self) -> None:
            super().interrupt()
            released.set()

    env = started(Stuck())
    with pytest.raises(FaultError) as caught:
        env.step(call("wait"))
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("deadline", "step")
    assert released.is_set()
    env.close()


def test_snapshot_by_copy_keeps_notes_and_randomness() -> None:
    env = started(Sums())
    env.step(call("note", text="a"))
    snapshot = env.snapshot()
    assert snapshot.state is not None
    forks = [env.restore(snapshot) for _ in range(2)]
    texts = [e.step(call("note", text="b")).observation[0]["content"] for e in (*forks, env)]
    assert len(set(texts)) == 1
    assert texts[0].startswith("a b ")


def test_release_is_passed_on() -> None:
    class Copy:
        released = 0

        def release(self) -> None:
            Copy.released += 1

    class Copies(Sums):
        def copy_state(self) -> Any:
            return Copy()

        def load_state(self, state: Any) -> None:
            super().load_state(((1, 2, 3), ()))

    env = started(Copies())
    snapshot = env.snapshot()
    snapshot.release()
    assert Copy.released == 1
    env.fork().close()
    assert Copy.released == 2


def test_setup_and_teardown_come_in_pairs_also_when_setup_fails() -> None:
    events: list[str] = []

    class Paired(Sums):
        def setup(self, task: Task) -> None:
            events.append("setup")
            if len(events) > 2:
                raise OSError("no world")
            super().setup(task)

        def teardown(self) -> None:
            events.append("teardown")

    env = started(Paired())
    with pytest.raises(FaultError, match="no world"):
        started(env)
    env.close()
    assert events == ["setup", "teardown", "setup", "teardown"]


def test_grade_may_return_a_number_and_must_be_defined() -> None:
    class Number(Sums):
        def grade(self) -> float:
            return 0.5

    step = started(Number()).step(say("bye"))
    assert [(c.name, c.value, c.scope) for c in step.info["reward"].components] == [
        ("reward", 0.5, "episode")
    ]

    class Ungraded(ToolEnv):
        id = "ungraded-v1"

    env = Ungraded()
    env.reset(options={"task": make_task("ungraded-v1", "train", 0)})
    with pytest.raises(FaultError, match=r"must define grade\(\)") as caught:
        env.step("bye")
    assert caught.value.fault.stage == "grade"


def test_a_tool_method_must_not_replace_a_method_of_ours() -> None:
    class Clash(Sums):
        @tool
        def finish(self) -> str:  # type: ignore[override]
            """End."""
            return "over"

    with pytest.raises(FaultError, match="must not be named 'finish'"):
        started(Clash())

    class Renamed(Sums):
        @tool(name="finish")
        def finish_tool(self) -> str:
            """End."""
            self.finish()
            return "over"

    assert started(Renamed()).step(call("finish")).terminated


def test_a_tool_error_is_answered_and_another_exception_is_a_fault() -> None:
    class Both(Sums):
        @tool
        def fail(self, how: str) -> str:
            """Fail."""
            raise ToolError("try again") if how == "gently" else RuntimeError("bug")

    env = started(Both())
    assert contents(env.step(call("fail", how="gently")).observation) == ["error: try again"]
    with pytest.raises(FaultError, match="RuntimeError: bug"):
        env.step(call("fail", how="badly"))

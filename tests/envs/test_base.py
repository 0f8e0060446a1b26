from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from envs.base import Outcome
from envs.errors import EpisodeOverError, NotRunningError, TaskError
from envs.policies import say
from envs.rewards import reward
from envs.types import Fault, FaultError, Reward, Split, Task
from sandbox.errors import SandboxLost
from tests.envs.toys.echo import TASK, Echo
from tools.errors import ToolError, ToolTimeout
from tools.types import Message


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


def play_to_the_end(env: Echo) -> None:
    env.reset(options=TASK)
    env.step("stop")


def test_reward_components_and_endings() -> None:
    env = Echo()
    messages, info = env.reset(options=TASK)
    assert messages == [{"role": "user", "content": "task 7"}]
    assert info == {"task_id": "t7"}
    step = env.step(say("hello"))
    assert (step.reward, step.terminated, step.truncated) == (0.25, False, False)
    assert "stop" not in step.info
    assert env.graded == 0
    step = env.step(say("stop"))
    assert (step.reward, step.terminated, step.truncated) == (1.25, True, False)
    assert step.info["stop"] == "submitted"
    assert [c.scope for c in step.info["reward"].components] == ["turn", "episode"]
    assert env.graded == 1


def test_max_turns_truncates_and_grades_once() -> None:
    env = Echo(max_turns=2)
    env.reset(options=TASK)
    assert not env.step("a").truncated
    step = env.step("b")
    assert (step.terminated, step.truncated, step.info["stop"], env.graded) == (False, True, "max_turns", 1)
    with pytest.raises(EpisodeOverError, match="call reset first"):
        env.step("c")
    assert Echo(max_turns=1).max_turns == 1
    with pytest.raises(ValueError, match="at least 1"):
        Echo(max_turns=0)


def test_life_before_reset_and_after_close() -> None:
    env = Echo()
    for call in (lambda: env.step("a"), env.snapshot, lambda: env.task):
        with pytest.raises(NotRunningError, match="reset"):
            call()
    env.reset(options=TASK)
    env.close()
    env.close()
    assert env.ended == 1
    with pytest.raises(NotRunningError, match="closed"):
        env.step("a")
    with pytest.raises(NotRunningError, match="closed"):
        env.reset()


def test_reset_draws_a_task_from_the_seed_and_the_tasks_seed_makes_the_world() -> None:
    env = Echo()
    first = [env.reset(seed=3)[1], env.reset()[1]]
    again = [env.reset(seed=3)[1], env.reset()[1]]
    assert first == again
    assert first[0] != first[1]
    worlds = []
    for seed in (0, 1, None):
        env.reset(seed=seed, options=TASK)
        worlds.append(env.step("x").observation)
    assert worlds[0] == worlds[1] == worlds[2]


def test_options_are_checked_before_the_episode_is_touched() -> None:
    env = Echo()
    env.reset(options=TASK)
    with pytest.raises(ValueError, match="'tusk'"):
        env.reset(options={"tusk": TASK["task"]})
    with pytest.raises(TypeError, match="is a Task"):
        env.reset(options={"task": "t7"})
    assert env.step("still there").observation
    assert env.reset(options={"split": "test"})[0]
    assert env.task.split == "test"


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (KeyError("x"), "environment", False),
        (ToolError("outside a tool"), "environment", False),
        (SandboxLost("gone"), "sandbox_lost", True),
        (OSError(errno.ENOSPC, "full"), "resource", True),
        (OSError(errno.EMFILE, "files"), "resource", True),
        (MemoryError(), "resource", True),
        (FileNotFoundError(errno.ENOENT, "no"), "environment", False),
        (ToolTimeout("slow", 1.0), "deadline", False),
        (TaskError("no database"), "task", False),
    ],
)
@pytest.mark.parametrize("stage", ["reset", "step", "grade"])
def test_exceptions_become_faults_at_one_boundary(
    stage: str, error: Exception, kind: str, retryable: bool
) -> None:
    env = Echo(fail={stage: raising(error)})
    with pytest.raises(FaultError) as caught:
        play_to_the_end(env)
    fault = caught.value.fault
    assert (fault.kind, fault.stage, fault.retryable) == (kind, stage, retryable)
    assert type(error).__name__ in fault.detail
    with pytest.raises(NotRunningError, match="fault"):
        env.step("again")
    env.close()
    assert env.ended == 1


def test_a_fault_passes_unchanged() -> None:
    fault = Fault(kind="engine", stage="generate", detail="of the caller's making")
    env = Echo(fail={"step": raising(FaultError(fault))})
    env.reset(options=TASK)
    with pytest.raises(FaultError) as caught:
        env.step("a")
    assert caught.value.fault is fault


def test_a_fault_in_close_is_named_and_close_stays_safe() -> None:
    env = Echo(fail={"close": raising(OSError("stuck"))})
    env.reset(options=TASK)
    with pytest.raises(FaultError, match="close"):
        env.close()
    env.close()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_rewards_are_finite(bad: float) -> None:
    class Odd(Echo):
        def _grade(self) -> Reward:
            return Reward((replace(reward(1.0).components[0], value=bad),))

    env = Odd()
    env.reset(options=TASK)
    with pytest.raises(FaultError, match="finite"):
        env.step("stop")


def test_an_interrupted_step_is_a_deadline_whatever_broke() -> None:
    running, broken = threading.Event(), threading.Event()

    class Waits(Echo):
        def _turn(self, action: Message) -> Outcome:
            running.set()
            broken.wait(5)
            raise ConnectionResetError("the worker died")

        def interrupt(self) -> None:
            super().interrupt()
            broken.set()

    env = Waits()
    env.reset(options=TASK)
    thread = threading.Thread(target=lambda: (running.wait(5), env.interrupt()))
    thread.start()
    with pytest.raises(FaultError) as caught:
        env.step("a")
    thread.join()
    assert env.interrupted
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("deadline", "step")
    env.close()


def test_an_interrupt_between_turns_stops_the_next() -> None:
    env = Echo()
    env.reset(options=TASK)
    env.interrupt()
    with pytest.raises(FaultError, match="interrupted"):
        env.step("a")


def test_close_during_a_step_wins() -> None:
    running, closed = threading.Event(), threading.Event()

    class Slow(Echo):
        def _turn(self, action: Message) -> Outcome:
            running.set()
            closed.wait(5)
            return super()._turn(action)

    env = Slow()
    env.reset(options=TASK)
    thread = threading.Thread(target=lambda: (running.wait(5), env.close(), closed.set()))
    thread.start()
    env.step("a")
    thread.join()
    with pytest.raises(NotRunningError, match="closed"):
        env.step("b")
    assert env.ended == 1


def test_no_world_is_built_after_a_close_that_came_first() -> None:
    class ClosedMeanwhile(Echo):
        @classmethod
        def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
            env.close()
            return super().tasks(split, n, seed)

        def _begin(self, task: Task) -> list[Message]:
            raise AssertionError("built a world after close")

    env = ClosedMeanwhile()
    with pytest.raises(FaultError, match="it was closed"):
        env.reset()
    assert env.ended == 0

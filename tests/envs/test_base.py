from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from envs import registry
from envs.base import Env, Outcome
from envs.errors import EpisodeOverError, NotRunningError, TaskError
from envs.policies import say
from envs.rewards import reward
from envs.types import Fault, FaultError, Reward, Split, Task
from sandbox.errors import SandboxLost
from tools.errors import ToolError, ToolTimeout
from tools.types import Message


class Echo(Env):
    """Repeats what it hears; `stop` ends the episode; every place can be told to fail."""

    id = "echo-v1"
    max_turns = 4

    def __init__(self, fail: dict[str, Callable[[], Any]] | None = None, **base: Any) -> None:
        super().__init__(**base)
        self.fail = fail or {}
        self.ended = self.graded = 0

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [make_task(seed + i, split) for i in range(n)]

    def _at(self, place: str) -> None:
        if place in self.fail:
            self.fail[place]()

    def _begin(self, task: Task) -> list[Message]:
        self._at("reset")
        return list(task.prompt)

    def _turn(self, action: Message) -> Outcome:
        self._at("step")
        text = f"{action['content']} {self.rng.integers(1000)}"
        stop = "submitted" if action["content"] == "stop" else None
        return Outcome(
            observation=[{"role": "user", "content": text}],
            reward=reward(heard=0.25, scope="turn"),
            stop=stop,  # type: ignore[arg-type]
        )

    def _grade(self) -> Reward:
        self._at("grade")
        self.graded += 1
        return reward(done=1.0)

    def _end(self) -> None:
        self.ended += 1
        self._at("close")


def make_task(seed: int, split: Split = "train") -> Task:
    return Task(
        id=f"t{seed}",
        env="echo-v1",
        prompt=({"role": "user", "content": f"task {seed}"},),
        seed=seed,
        split=split,
    )


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


def play_to_the_end(env: Echo) -> None:
    env.reset(options=TASK)
    env.step("stop")


TASK = {"task": make_task(7)}


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


# ------------------------------------------------------------------------------------------------- forking


def test_replay_restores_at_every_turn() -> None:
    env = Echo()
    env.reset(seed=1, options=TASK)
    snapshots = [env.snapshot()]
    steps = []
    for text in ("a", "b", "stop"):
        steps.append(env.step(text))
        snapshots.append(env.snapshot())
    for turn, snapshot in enumerate(snapshots):
        assert len(snapshot.observation_hashes) == turn + 1
        other = env.restore(snapshot)
        assert other.turns == turn
        assert [other.step(t) for t in ("a", "b", "stop")[turn:]] == steps[turn:]
        assert other.over
        other.close()


def test_a_fork_is_independent_and_keeps_the_constructor() -> None:
    env = Echo(max_turns=9)
    env.reset(options=TASK)
    other = env.fork()
    assert type(other) is Echo
    assert other.max_turns == 9
    assert other.step("stop").terminated
    assert env.turns == 0
    assert not env.over
    assert env.step("a").reward == 0.25


def test_a_replay_that_differs_is_a_replay_fault_and_leaves_the_parent() -> None:
    env = Echo()
    env.reset(options=TASK)
    env.step("a")
    snapshot = env.snapshot()
    wrong = replace(snapshot, observation_hashes=(snapshot.observation_hashes[0], "0" * 32))
    with pytest.raises(FaultError, match="observation of turn 1 differs") as caught:
        env.restore(wrong)
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("replay", "restore")
    wrong = replace(snapshot, observation_hashes=("0" * 32, snapshot.observation_hashes[1]))
    with pytest.raises(FaultError, match="first messages differ"):
        env.restore(wrong)
    early = replace(snapshot, actions=(say("stop"), say("b")), observation_hashes=("", "", ""))
    early = replace(early, observation_hashes=(snapshot.observation_hashes[0], _hash_of_stop(), "x"))
    with pytest.raises(FaultError, match="ended before turn 2"):
        env.restore(early)
    assert env.step("b").observation
    with pytest.raises(ValueError, match="'other-v1' cannot be restored"):
        env.restore(replace(snapshot, env="other-v1"))


def _hash_of_stop() -> str:
    env = Echo()
    env.reset(options=TASK)
    env.step("stop")
    return env.snapshot().observation_hashes[1]


def test_snapshots_do_not_see_later_changes() -> None:
    env = Echo()
    env.reset(options=TASK)
    action: Message = {"role": "assistant", "content": "a"}
    step = env.step(action)
    snapshot = env.snapshot()
    action["content"] = step.observation[0]["content"] = "changed"
    env.step("b")
    assert len(snapshot.actions) == 1
    assert snapshot.actions[0]["content"] == "a"
    assert env.restore(snapshot).turns == 1


def test_asynchronous_twins() -> None:
    async def episode() -> tuple[float, bool]:
        env = Echo()
        await env.areset(options=TASK)
        other = await env.arestore(await env.asnapshot())
        step = await other.astep("stop")
        await other.aclose()
        await env.aclose()
        return step.reward, step.terminated

    assert asyncio.run(episode()) == (1.25, True)


# ----------------------------------------------------------------------------------------------- gymnasium


def test_gymnasium_checks_the_bare_and_the_made_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    registry.register("echo-v1", Echo)
    check_env(registry.make("echo-v1"))
    made = gymnasium.make("agent_rl/echo-v1")
    check_env(made.unwrapped)
    assert isinstance(made.unwrapped, Echo)
    made.reset(seed=1)
    assert made.step({"role": "assistant", "content": "stop"})[2] is True


def test_gymnasium_vector_without_shared_memory() -> None:
    from gymnasium.vector import SyncVectorEnv

    vector = SyncVectorEnv([Echo, Echo], copy=False)
    observations, _ = vector.reset(seed=[1, 2])
    assert len(observations) == 2
    observations, rewards, *_ = vector.step([say("a"), say("stop")])
    assert rewards.tolist() == [0.25, 1.25]
    vector.close()


def test_without_a_task_source_reset_says_what_to_do() -> None:
    class Bare(Env):
        id = "bare-v1"

    with pytest.raises(FaultError, match=r"tasks\(split, n, seed\)"):
        Bare().reset()

    class Dry(Echo):
        @classmethod
        def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
            return []

    with pytest.raises(FaultError, match="no task in split 'train'"):
        Dry().reset()

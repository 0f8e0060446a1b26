from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from envs import registry
from envs.base import Env
from envs.policies import say
from envs.types import FaultError, Split, Task
from tests.envs.toys.echo import TASK, Echo
from tools.types import Message

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

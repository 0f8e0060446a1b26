"""A fault is never a reward: retried, or left out of loss and baseline, and the group goes on."""

import errno

import pytest

from agent_rl.branching import BranchingConfig
from agent_rl.rollout.faults import boundary
from envs.types import Fault, FaultError
from tests.agent_rl import toy


@pytest.fixture
def breaks(monkeypatch):
    def set_to(what):
        monkeypatch.setattr(toy.LookEnv, "breaks", staticmethod(what), raising=False)

    return set_to


def test_a_retryable_fault_is_retried_and_leaves_no_trace(breaks):
    breaks(toy.Flaky(1))
    collection = toy.collect(toy.collector(toy.engine(toy.look_then_submit)))
    assert collection.retried == 1
    assert [e.fault for e in collection.forest.episodes] == [None] * 4
    assert [e.reward for e in collection.forest.episodes] == [1.0, 0.0, 1.0, 0.0]
    reachable = collection.forest.select(e.id for e in collection.forest.episodes)
    assert set(reachable.nodes) == set(collection.forest.nodes)


def test_a_fault_that_stays_excludes_the_episode_from_loss_and_baseline(breaks):
    breaks(toy.Flaky(99))
    episodes = toy.collect(toy.collector(toy.engine(toy.look_then_submit))).forest.episodes
    assert [e.fault.kind for e in episodes] == ["sandbox_lost"] * 4
    assert all(e.exclude_from_loss and e.exclude_from_baseline for e in episodes)
    assert all(e.stop == "fault" and e.reward == 0.0 for e in episodes)


def test_a_bug_of_the_environment_is_not_retried(breaks):
    def bug(env):
        raise KeyError("colour")

    breaks(toy.Flaky(1, bug))
    collection = toy.collect(toy.collector(toy.engine(toy.look_then_submit)))
    kinds = [e.fault and e.fault.kind for e in collection.forest.episodes]
    assert sorted(map(str, kinds)) == ["None", "None", "None", "environment"]
    assert collection.retried == 0


def test_an_engine_fault_is_an_engine_fault():
    def dies(state, sampling):
        raise FaultError(Fault(kind="engine", stage="generate", detail="gone"))

    engine = toy.engine(dies)
    episodes = toy.collect(toy.collector(engine), group_size=2).forest.episodes
    assert [e.fault.kind for e in episodes] == ["engine", "engine"]


def test_a_replay_that_differs_drops_the_branch_and_never_faults_its_parent(breaks):
    calls = []

    def drifts(env):
        calls.append(1)
        env.word = f"word{len(calls)}"

    breaks(drifts)
    rule = BranchingConfig(name="random_turn", trees=1, rounds=1, expansions=2)
    collection = toy.collect(toy.collector(toy.engine(toy.look_then_submit), branching=rule), group_size=3)
    assert collection.dropped_branches == 2
    assert [e.fault for e in collection.forest.episodes] == [None]


def test_a_step_that_hangs_is_interrupted_and_its_environment_never_used_again(breaks):
    import threading

    release = threading.Event()
    breaks(toy.Flaky(1, lambda env: release.wait(20)))
    collector = toy.collector(toy.engine(toy.look_then_submit), env_timeout_s=0.3, retries=0)
    try:
        collection = toy.collect(collector, group_size=2)
    finally:
        release.set()
    kinds = sorted(str(e.fault and e.fault.kind) for e in collection.forest.episodes)
    assert kinds == ["None", "deadline"]
    assert collector.threads.abandoned == 1


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (MemoryError(), "resource", True),
        (OSError(errno.ENOSPC, "full"), "resource", True),
        (OSError(errno.ENOENT, "none"), "environment", False),
        (ValueError("bug"), "environment", False),
    ],
)
def test_exceptions_are_classified_once(error, kind, retryable):
    with pytest.raises(FaultError) as caught, boundary("step"):
        raise error
    assert (caught.value.fault.kind, caught.value.fault.retryable) == (kind, retryable)
    assert caught.value.fault.stage == "step"


def test_what_an_engine_raises_is_an_engine_fault():
    with pytest.raises(FaultError) as caught, boundary("generate"):
        raise RuntimeError("CUDA")
    assert caught.value.fault.kind == "engine"

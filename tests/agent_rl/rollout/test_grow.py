"""Groups under adversity: what is opened is closed, what is dropped takes nothing along."""

import asyncio
import copy
import dataclasses
import threading
import time

import pytest

from agent_rl.branching import BranchingConfig
from agent_rl.context import ContextConfig
from agent_rl.rendering import Renderer
from agent_rl.rollout import record
from agent_rl.types.seams import Branch, TaskRequest
from envs.types import Fault, FaultError, RewardComponent
from tests.agent_rl import toy
from tools import formats

TREES = BranchingConfig(name="random_turn", trees=2, rounds=1, expansions=2)


class Rounds:
    """Continues where a test says, round by round: `root`, or the turn of an episode."""

    snapshots = True

    def __init__(self, *rounds):
        self.rounds = list(rounds)

    def next(self, forest, budget, rng):
        root = next(n for n in forest.nodes.values() if n.parent is None)
        branches = []
        for where in self.rounds.pop(0) if self.rounds else ():
            node = root.id
            if where != "root":
                node = forest.turns[forest.episodes[where[0]].turns[where[1]]].observation
            branches.append(Branch(node, len(forest.nodes[node]), 1))
        return branches


class Counted(toy.LookEnv):
    """Counts what is open; copies its world, so that snapshots hold something."""

    lock = threading.Lock()
    worlds = 0
    snapshots = 0
    broken_releases = 0

    @classmethod
    def count(cls, name, by):
        with cls.lock:
            setattr(cls, name, getattr(cls, name) + by)

    def setup(self, task):
        self.count("worlds", 1)
        super().setup(task)

    def teardown(self):
        self.count("worlds", -1)

    def copy_state(self):
        return Held(type(self), self.word)

    def load_state(self, state):
        self.count("worlds", 1)
        self.word, self.submitted = state.word, None


class Held:
    def __init__(self, env, word):
        self.env, self.word = env, word
        env.count("snapshots", 1)

    def release(self):
        self.env.count("snapshots", -1)
        if self.env.broken_releases:
            self.env.count("broken_releases", -1)
            raise OSError("busy")


@pytest.fixture
def counted():
    return type("Fresh", (Counted,), {"lock": threading.Lock(), "worlds": 0, "snapshots": 0})


@pytest.mark.parametrize("broken", [0, 1])
def test_every_environment_is_closed_and_every_snapshot_released(counted, broken):
    counted.broken_releases = broken
    engine = toy.engine(toy.look_then_submit)
    forest = toy.collect(
        toy.collector(engine, branching=TREES, make_env=counted), tasks=3, group_size=6
    ).forest
    assert len(forest.episodes) == 18
    assert (counted.worlds, counted.snapshots) == (0, 0)


# On a loaded machine one world in some hundred runs is still open at the end without lockstep: not understood yet.
@pytest.mark.parametrize("deterministic", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_error_of_ours_ends_the_collection_and_leaves_nothing_open(counted, deterministic):
    engine = toy.engine(toy.look_then_submit)
    collector = toy.collector(engine, branching=TREES, make_env=counted, deterministic=deterministic)

    def progress(episode):
        raise ValueError("the terminal is gone")

    async def run():
        with pytest.raises(ValueError, match="the terminal is gone"):
            await collector.collect(
                [TaskRequest(task=toy.task(i)) for i in range(3)], step=0, group_size=6, progress=progress
            )
        # A thread that was left behind closes its environment by itself.
        deadline = time.monotonic() + 25
        while (counted.worlds, counted.snapshots) != (0, 0) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return counted.worlds, counted.snapshots

    assert asyncio.run(run()) == (0, 0)


def test_cancelling_a_collection_leaves_nothing_open(counted):
    def slow(state, sampling):
        return 'look("a")'

    collector = toy.collector(
        toy.engine(slow, window=100_000), make_env=counted, branching=TREES, deterministic=True
    )
    counted.max_turns = 10_000

    async def run():
        work = asyncio.ensure_future(
            collector.collect([TaskRequest(task=toy.task(i)) for i in range(2)], step=0, group_size=4)
        )
        await asyncio.sleep(0.3)
        work.cancel()
        await asyncio.wait({work}, timeout=20)
        assert work.cancelled()
        # A thread that was left behind closes its environment by itself.
        deadline = time.monotonic() + 25
        while (counted.worlds, counted.snapshots) != (0, 0) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return counted.worlds, counted.snapshots

    assert asyncio.run(run()) == (0, 0)


@pytest.mark.parametrize("deterministic", [False, True])
def test_an_environment_that_cannot_be_made_is_a_fault_and_the_others_go_on(deterministic):
    made = []

    def make():
        made.append(1)
        if len(made) == 1:
            raise RuntimeError("no daemon")
        return toy.LookEnv()

    engine = toy.engine(toy.look_then_submit)
    collection = toy.collect(
        toy.collector(engine, make_env=make, deterministic=deterministic), tasks=2, group_size=2
    )
    kinds = [e.fault and e.fault.kind for e in collection.forest.episodes]
    assert kinds == ["environment", "environment", None, None]


def test_a_group_whose_first_reset_is_lost_is_retried(monkeypatch):
    left = [1]

    def setup(env, task):
        if left and left.pop():
            raise FaultError(Fault(kind="sandbox_lost", stage="reset", retryable=True))
        original(env, task)

    original = toy.LookEnv.setup
    monkeypatch.setattr(toy.LookEnv, "setup", setup)
    collection = toy.collect(toy.collector(toy.engine(toy.look_then_submit)))
    assert [e.fault for e in collection.forest.episodes] == [None] * 4
    assert collection.retried == 1


def test_episodes_of_a_group_that_see_different_prompts_are_faults():
    class Varying(toy.LookEnv):
        made = 0

        def setup(self, task):
            super().setup(task)
            Varying.made += 1
            self.number = Varying.made

        def prompt(self):
            return [{"role": "user", "content": "what is a?" + "?" * (self.number == 3)}]

    episodes = toy.collect(
        toy.collector(toy.engine(toy.look_then_submit), make_env=Varying, env_threads=1, concurrency=1)
    ).forest.episodes
    assert [e.fault and e.fault.kind for e in episodes] == [None, "environment", None, None]
    assert "share one prompt" in episodes[1].fault.detail


def test_a_dropped_branch_keeps_its_number():
    calls = []

    def drifts(env):
        calls.append(1)
        env.word = f"word{len(calls)}"

    drifting = type("Drifting", (toy.LookEnv,), {"breaks": staticmethod(drifts)})
    collector = toy.collector(toy.engine(toy.look_then_submit), make_env=drifting)
    collector.branching = Rounds(["root"], [(0, 0), "root"], ["root"])
    collection = toy.collect(collector)
    assert collection.dropped_branches == 1
    assert [e.sample for e in collection.forest.episodes] == [0, 2, 3]
    assert all(t.startswith(e.id + ":") for e in collection.forest.episodes for t in e.turns)


def test_an_action_that_ended_is_not_continued():
    class AfterTheAction(Rounds):
        def next(self, forest, budget, rng):
            branches = super().next(forest, budget, rng)
            actions = [n for n in forest.nodes.values() if n.kind == "action"]
            return [Branch(a.id, len(a), 1) for a in actions[:1]] if branches and actions else branches

    collector = toy.collector(toy.engine(toy.look_then_submit))
    collector.branching = AfterTheAction(["root"], ["root"])
    collection = toy.collect(collector)
    assert collection.dropped_branches == 1
    assert [e.fault for e in collection.forest.episodes] == [None]


def test_beyond_the_cap_turns_are_not_branched_from(monkeypatch):
    monkeypatch.setattr(record, "MAX_SNAPSHOTS", 0)
    collector = toy.collector(toy.engine(toy.look_then_submit), branching=TREES)
    collection = toy.collect(collector, group_size=6)
    assert [e.fault for e in collection.forest.episodes] == [None, None]
    assert collection.dropped_branches == 4


def test_trees_with_summaries_branch_only_where_the_context_went_on():
    def say(state, sampling):
        if state.endswith("Sum up.<|end|><|assistant|>"):
            return "nothing yet"
        return 'look("a")' if sampling.seed[-1] < 6 else 'submit("red")'

    root = len(toy.renderer().prompt(toy.task().prompt, toy.LookEnv.schemas()))
    context = ContextConfig(name="summarize", working_tokens=root + 30, instruction="Sum up.")
    long = type("Long", (toy.LookEnv,), {"max_turns": 12})
    for step in range(3):
        collector = toy.collector(
            toy.engine(say), branching=TREES, context=context, max_new_tokens=16, make_env=long
        )
        collection = toy.collect(collector, group_size=6, step=step)
        assert collection.dropped_branches == 0
        assert [e.fault for e in collection.forest.episodes] == [None] * 6
        assert any(len(e.leaves) > 1 for e in collection.forest.episodes)


def test_a_branch_keeps_the_episode_rewards_that_came_before_it():
    class Paying(toy.LookEnv):
        def _turn(self, action):
            outcome = super()._turn(action)
            paid = RewardComponent(name="paid", value=0.5)
            return dataclasses.replace(outcome, reward=type(outcome.reward)((paid,)))

    collector = toy.collector(toy.engine(toy.look_then_submit), make_env=Paying)
    collector.branching = Rounds(["root"], [(0, 0)])
    first, second = toy.collect(collector).forest.episodes
    assert second.branched_from == first.id
    assert [c.name for c in second.rewards] == ["paid", "paid", "correct"]


def test_an_engine_that_stops_cancels_the_episode():
    inner = toy.engine(toy.look_then_submit)

    class Stopping:
        window = inner.window

        async def generate(self, token_ids, sampling, policy="main"):
            done = await inner.generate(token_ids, sampling, policy)
            return dataclasses.replace(done, stop="cancelled")

    (episode,) = toy.collect(toy.collector(Stopping()), group_size=1).forest.episodes
    assert (episode.stop, episode.truncated) == ("cancelled", True)
    assert episode.exclude_from_loss
    assert episode.exclude_from_baseline


def test_a_fault_makes_no_spread():
    breaks = toy.Flaky(1, lambda env: toy.WORDS[9])
    faulty = type("Faulty", (toy.LookEnv,), {"breaks": staticmethod(breaks)})

    def right(state, sampling):
        return 'submit("red")' if "The word is" in state else 'look("a")'

    collection = toy.collect(toy.collector(toy.engine(right), make_env=faulty))
    assert sum(e.fault is not None for e in collection.forest.episodes) == 1
    assert collection.metrics()["zero_spread"] == 1.0


def test_a_template_that_rewrites_the_past_opens_a_chain():
    """This one forgets the calls of earlier answers, as templates do with thinking."""
    tokenizer = copy.deepcopy(toy.TOKENIZER)
    said = "message['content']"
    forgets = f"({said}.split('look(')[0] if message['role'] == 'assistant' and not loop.last else {said})"
    tokenizer.chat_template = tokenizer.chat_template.replace(said, forgets)
    engine = toy.engine(toy.look_then_submit)
    collector = toy.collector(engine)
    collector.renderer = Renderer(tokenizer, formats.get("pythonic"), history="template")
    forest = toy.collect(collector, group_size=1).forest
    (episode,) = forest.episodes
    assert episode.reward == 1.0
    first, second = (toy.TOKENIZER.decode(forest.tokens(leaf)) for leaf in episode.leaves)
    assert first.endswith('<|assistant|>look("a")<|end|>')
    assert second.endswith('<|assistant|>submit("red")<|end|>')
    assert "look(" not in second.rpartition("what is a?")[2]
    asked = [tuple(prefix.tolist()) for prefix, _ in engine.requests]
    assert asked == [
        tuple(forest.tokens(leaf)[: -len(forest.nodes[leaf])].tolist()) for leaf in episode.leaves
    ]

"""Groups on a toy world with a scripted engine: what is recorded is what happened."""

import numpy as np
import pytest

from agent_rl.branching import BranchingConfig
from agent_rl.context import ContextConfig
from agent_rl.types import Forest
from tests.agent_rl import toy


def engine_calls(forest: Forest) -> list[tuple[int, ...]]:
    """The prefix of every engine call, rebuilt from the forest alone."""
    calls = []
    for node in forest.nodes.values():
        if node.sampled and node.parent is not None:
            whole = forest.tokens(node.id)
            calls.append(tuple(whole[: len(whole) - len(node)].tolist()))
    return sorted(calls)


def asked(engine) -> list[tuple[int, ...]]:
    return sorted(tuple(prefix.tolist()) for prefix, _ in engine.requests)


def test_a_group_shares_its_root_and_records_rewards_and_turns():
    engine = toy.engine(toy.look_then_submit)
    forest = toy.collect(toy.collector(engine)).forest
    assert len(forest.episodes) == 4
    assert [e.reward for e in forest.episodes] == [1.0, 0.0, 1.0, 0.0]
    assert all(e.terminated and not e.truncated and e.stop == "submitted" for e in forest.episodes)
    assert sum(n.parent is None for n in forest.nodes.values()) == 1
    first = forest.episodes[0]
    turns = [forest.turns[t] for t in first.turns]
    assert [t.tool_calls for t in turns] == [1, 1]
    assert [c.name for c in turns[0].rewards] == ["looked"]
    assert turns[1].observation is None
    assert toy.TOKENIZER.decode(forest.tokens(first.leaves[0])).endswith(
        '<|user|>what is a?<|end|><|assistant|>look("a")<|end|>'
        '<|user|>The word is red.<|end|><|assistant|>submit("red")<|end|>'
    )


def test_equal_observations_are_equal_states():
    forest = toy.collect(toy.collector(toy.engine(toy.look_then_submit))).forest
    keys = [[forest.turns[t].state_key for t in e.turns] for e in forest.episodes]
    assert len({k[0] for k in keys}) == 1
    assert len({k[1] for k in keys}) == 1
    assert keys[0][0] != keys[0][1]


def test_every_engine_call_can_be_rebuilt_from_the_forest():
    engine = toy.engine(toy.look_then_submit)
    forest = toy.collect(toy.collector(engine), tasks=3).forest
    assert engine_calls(forest) == asked(engine)


def summarising(state: str, sampling) -> str:
    if state.endswith("Sum up.<|end|><|assistant|>"):
        return "nothing yet"
    return 'look("a")' if sampling.seed[-1] < 4 else 'submit("red")'


def supo(window: int = 400, **more):
    engine = toy.engine(summarising, window=window)
    root = len(toy.renderer().prompt(toy.task().prompt, toy.LookEnv.schemas()))
    config = ContextConfig(name="summarize", working_tokens=root + 30, instruction="Sum up.", **more)
    return engine, toy.collector(engine, context=config, max_new_tokens=16)


def test_a_summary_opens_a_chain_and_the_discarded_turn_stays_in_the_forest():
    engine, collector = supo()
    forest = toy.collect(collector, group_size=1).forest
    (episode,) = forest.episodes
    assert engine_calls(forest) == asked(engine)
    kinds = [forest.turns[t].kind for t in episode.turns]
    assert "context" in kinds
    assert len(episode.leaves) == 1 + kinds.count("context")
    assert episode.stop == "submitted"
    assert episode.reward == 1.0
    on_chains = {s.node for leaf in episode.leaves for s in forest.actions(leaf)}
    discarded = [t for t in episode.turns if forest.turns[t].action not in on_chains]
    assert len(discarded) == kinds.count("context")
    summary = next(forest.turns[t] for t in episode.turns if forest.turns[t].kind == "context")
    assert forest.nodes[summary.action].sampled
    assert summary.action == episode.leaves[0]
    second = toy.TOKENIZER.decode(forest.tokens(episode.leaves[1]))
    assert "<|end|><|user|>what is a?<|end|><|user|>nothing yet<|end|>" in second
    first = toy.TOKENIZER.decode(forest.tokens(episode.leaves[0]))
    assert first.endswith("<|end|><|user|>Sum up.<|end|><|assistant|>nothing yet<|end|>")
    assert "<|assistant|><|user|>" not in first


def test_too_many_summaries_are_overlong_without_loss_but_in_the_baseline():
    _, collector = supo(max_summaries=0)
    (episode,) = toy.collect(collector, group_size=1).forest.episodes
    assert episode.stop == "max_summaries"
    assert episode.truncated
    assert episode.exclude_from_loss
    assert not episode.exclude_from_baseline


def test_a_summary_that_does_not_end_is_overlong():
    def endless(state: str, sampling) -> str:
        return "look " * 40 if "Sum up." in state else 'look("a")'

    engine = toy.engine(endless)
    config = ContextConfig(name="summarize", working_tokens=60, instruction="Sum up.")
    (episode,) = toy.collect(
        toy.collector(engine, context=config, max_new_tokens=16), group_size=1
    ).forest.episodes
    assert episode.stop == "max_summaries"


def trees(**more):
    return BranchingConfig(name="random_turn", trees=2, rounds=1, expansions=2, **more)


def test_branches_continue_earlier_turns_and_share_them():
    engine = toy.engine(toy.look_then_submit)
    forest = toy.collect(toy.collector(engine, branching=trees()), group_size=6).forest
    assert len(forest.episodes) == 6
    assert engine_calls(forest) == asked(engine)
    branched = [e for e in forest.episodes if e.branched_from]
    assert len(branched) == 4
    for episode in branched:
        parent = next(e for e in forest.episodes if e.id == episode.branched_from)
        assert episode.turns[0] == parent.turns[0]
        assert episode.turns[1] != parent.turns[1]
        assert len(episode.turns) == 2
    # 2 trees x 2 turns, then one new turn a branch: nothing is sampled twice
    assert len(engine.requests) == 8
    assert [e.reward for e in forest.episodes] == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]


class InsideTurn:
    """Continues the first action of the first episode after its first token."""

    snapshots = True

    def next(self, forest, budget, rng):
        from agent_rl.types.seams import Branch

        root = next(n for n in forest.nodes.values() if n.parent is None)
        if not forest.episodes:
            return [Branch(root.id, len(root), 1)]
        if len(forest.episodes) == 1:
            return [Branch(forest.turns[forest.episodes[0].turns[1]].action, 2, 1)]
        return []


def test_a_branch_inside_a_turn_says_the_shared_part_once():
    def say(state: str, sampling) -> str:
        if "The word is" not in state:
            return 'look("a")'
        said = state.rpartition("<|assistant|>")[2]
        return 'submit("red")'.removeprefix(said)

    engine = toy.engine(say)
    collector = toy.collector(engine)
    collector.branching = InsideTurn()
    forest = toy.collect(collector, group_size=2).forest
    assert engine_calls(forest) == asked(engine)
    first, second = forest.episodes
    assert second.reward == 1.0
    node = forest.nodes[forest.turns[second.turns[1]].action]
    assert node.at == 2
    assert node.parent == forest.turns[first.turns[1]].action
    assert forest.tokens(second.leaves[0]).tolist() == forest.tokens(first.leaves[0]).tolist()


def test_an_action_cut_by_its_limit_ends_the_episode():
    engine = toy.engine(lambda state, sampling: "look " * 50)
    (episode,) = toy.collect(toy.collector(engine, max_new_tokens=8), group_size=1).forest.episodes
    assert (episode.stop, episode.truncated, episode.terminated) == ("length", True, False)
    assert not episode.exclude_from_loss


def test_an_episode_whose_next_turn_does_not_fit_is_truncated():
    root = len(toy.renderer().prompt(toy.task().prompt, toy.LookEnv.schemas()))
    engine = toy.engine(lambda state, sampling: 'look("a")', window=root + 70)
    (episode,) = toy.collect(toy.collector(engine, max_new_tokens=30), group_size=1).forest.episodes
    assert episode.stop == "window"
    assert len(episode.turns) >= 1


def test_a_first_prompt_that_does_not_fit_is_a_task_fault_that_says_what_to_do():
    engine = toy.engine(toy.look_then_submit, window=42)
    forest = toy.collect(toy.collector(engine, max_new_tokens=40), group_size=2).forest
    assert [e.fault.kind for e in forest.episodes] == ["task", "task"]
    assert "raise engine.window" in forest.episodes[0].fault.detail


def test_malformed_calls_are_observations():
    def say(state: str, sampling) -> str:
        replies = ["look(a=", "fly(1)", "look(b=2)", 'look("a")', 'submit("red")']
        return replies[sampling.seed[-1]]

    forest = toy.collect(toy.collector(toy.engine(say, window=4000)), group_size=1).forest
    (episode,) = forest.episodes
    assert episode.fault is None
    assert episode.reward == 1.0
    assert [forest.turns[t].tool_errors for t in episode.turns] == [1, 1, 1, 0, 0]


def test_sampled_tokens_are_stored_as_they_came():
    engine = toy.engine(toy.look_then_submit)
    forest = toy.collect(toy.collector(engine)).forest
    for node in forest.nodes.values():
        if node.kind == "action":
            assert node.sampled_logprobs is not None
            assert node.sampled_logprobs.dtype == np.float32
            assert len(node.sampled_logprobs) == len(node.versions) == len(node)
            assert node.token_ids[-1] == toy.TOKENIZER.eos_token_id


def test_metrics_count_spread_and_tokens():
    metrics = toy.collect(toy.collector(toy.engine(toy.look_then_submit)), tasks=2).metrics()
    assert metrics["success"] == 0.5
    assert metrics["zero_spread"] == 0.0
    assert metrics["turns"] == 2.0
    assert metrics["sampled_tokens"] > 0


@pytest.mark.parametrize("deterministic", [False, True])
def test_concurrency_bounds_and_waves_do_not_change_what_is_recorded(deterministic):
    plain = toy.collect(toy.collector(toy.engine(toy.look_then_submit)), tasks=3).forest
    other = toy.collect(
        toy.collector(toy.engine(toy.look_then_submit), deterministic=deterministic, concurrency=2), tasks=3
    ).forest
    assert list(plain.nodes) == list(other.nodes) or set(plain.nodes) == set(other.nodes)
    for leaf in (leaf for e in plain.episodes for leaf in e.leaves):
        assert plain.tokens(leaf).tolist() == other.tokens(leaf).tolist()

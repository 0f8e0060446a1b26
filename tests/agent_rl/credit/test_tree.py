from __future__ import annotations

import pytest

from agent_rl.credit import CreditConfig, make
from agent_rl.types import Annotations, Credits, Forest
from tests.agent_rl.forests import ForestBuilder, advantages


def credit(forest: Forest, rule: str) -> Credits:
    return make(CreditConfig(name="tree", rule=rule)).credit(forest, Annotations())


def trees(*rewards: list[float]) -> tuple[ForestBuilder, list[str]]:
    """Trees of one group: a first turn each, and one leaf action per reward."""
    b = ForestBuilder()
    root, firsts = b.prompt([1]), []
    for i, leaf_rewards in enumerate(rewards):
        first = b.action(root, [2 + i])
        seen = b.observation(first, [9])
        start = b.turn(first, seen)
        firsts.append(first)
        for k, reward in enumerate(leaf_rewards):
            b.episode([start, b.turn(b.action(seen, [20 + k]))], reward=reward)
    return b, firsts


def test_tree_grpo_worked_example() -> None:
    b, firsts = trees([1, 0], [1, 1])
    credits = credit(b.forest(), "tree_grpo")
    expected = [1.207105, -2.207103, 0.499999, 0.499999]
    assert advantages(credits) == {f"e{i}": {a} for i, a in enumerate(expected)}
    assert credits.nodes.count(firsts[0]) == 2  # shared prefixes get the advantages of all their leaves


def test_tree_grpo_adds_nothing_within_a_tree_of_one_leaf() -> None:
    b, _ = trees([1], [0])
    assert advantages(credit(b.forest(), "tree_grpo")) == {"e0": {0.707106}, "e1": {-0.707106}}


def by_node(credits: Credits) -> dict[tuple[str, int, int], float]:
    found = {(r.node, r.start, r.end): round(r.advantage, 6) for r in credits}
    assert len(found) == len(credits)  # each token once
    return found


def test_tree_rl_worked_example() -> None:
    b, (a, c) = trees([1, 0], [0, 0])
    leaves = [e.leaves[0] for e in b.episodes]
    expected = [(a, 0.353553), (c, -0.353553)]
    expected += list(zip(leaves, [1.25, -0.75, -0.25, -0.25], strict=True))
    assert by_node(credit(b.forest(), "tree_rl")) == {(node, 0, 1): r for node, r in expected}


def test_tree_rl_cuts_an_action_where_a_branch_leaves_it() -> None:
    b = ForestBuilder()
    whole = b.action(b.prompt([1]), [2, 3, 4])
    branch = b.action(whole, [5], at=1)
    b.episode([b.turn(whole)], reward=1)
    b.episode([b.turn(branch)], reward=0)
    # The first token has both leaves: it is the root itself and is worth 0. Then (V - V_root) twice.
    assert by_node(credit(b.forest(), "tree_rl")) == {
        (whole, 0, 1): 0.0,
        (whole, 1, 3): 1.0,
        (branch, 0, 1): -1.0,
    }


def test_tree_rl_counts_turns_without_a_branch_as_one_node() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    for reward in (1.0, 0.0):
        first = b.action(root, [2])
        last = b.action(b.observation(first, [3]), [4])
        b.episode([b.turn(first), b.turn(last)], reward=reward)
    assert [round(r.advantage, 6) for r in credit(b.forest(), "tree_rl")] == [1.0, 1.0, -1.0, -1.0]


def test_tree_rl_exclusions() -> None:
    b = ForestBuilder()
    first = b.action(b.prompt([1]), [2])
    seen = b.observation(first, [9])
    start = b.turn(first, seen)
    flags = [{"exclude_from_loss": True}, {}, {"exclude_from_baseline": True}]
    ends = [b.action(seen, [20 + k]) for k in range(3)]
    for end, reward, flag in zip(ends, [1.0, 0.0, 1.0], flags, strict=True):
        b.episode([start, b.turn(end)], reward=reward, **flag)
    credits = credit(b.forest(), "tree_rl")
    # V(root) = 0.5 over e0 and e1; the shared node is trained through e1; e2 is judged by its own reward.
    assert by_node(credits) == {(first, 0, 1): 0.0, (ends[1], 0, 1): -1.0, (ends[2], 0, 1): 1.0}
    assert credits.episodes[0] == "e1"


@pytest.mark.parametrize("rule", ["tree_grpo", "tree_rl"])
def test_one_leaf_in_total_gives_0(rule: str) -> None:
    b, _ = trees([1])
    assert {r.advantage for r in credit(b.forest(), rule)} == {0.0}


def test_tree_rl_divides_by_the_leaves_that_count() -> None:
    b = ForestBuilder()
    first = b.action(b.prompt([1]), [2])
    seen = b.observation(first, [9])
    start = b.turn(first, seen)
    for k, (reward, flags) in enumerate(
        [(1.0, {}), (0.0, {"exclude_from_baseline": True, "exclude_from_loss": True})]
    ):
        b.episode([start, b.turn(b.action(seen, [20 + k]))], reward=reward, **flags)
    other = b.action("n0", [3])
    b.episode([b.turn(other)], reward=0.0)
    # Root 0.5. Below `first` one leaf counts, with reward 1, so (1 - 0.5) + (1 - 0.5) is divided by 1, not sqrt(2).
    assert by_node(credit(b.forest(), "tree_rl"))[first, 0, 1] == pytest.approx(1.0)

import numpy as np

from agent_rl.branching import AtRoot, BranchingConfig, RandomTurn
from agent_rl.types import Episode, Forest, Node, Turn

RNG = np.random.default_rng(0)


def forest(turns_by_episode: list[int]) -> Forest:
    """A root and one chain an episode, each turn an action of 2 and an observation of 3 tokens."""
    nodes = {"root": Node(id="root", parent=None, at=0, kind="prompt", token_ids=np.zeros(4, np.int32))}
    turns: dict[str, Turn] = {}
    episodes = []
    for e, n in enumerate(turns_by_episode):
        parent, at, ids = "root", 4, []
        for t in range(n):
            action, observation = f"{e}a{t}", f"{e}o{t}"
            last = t == n - 1
            nodes[action] = Node(
                id=action, parent=parent, at=at, kind="action", token_ids=np.zeros(2, np.int32)
            )
            if not last:
                nodes[observation] = Node(
                    id=observation, parent=action, at=2, kind="observation", token_ids=np.zeros(3, np.int32)
                )
            turns[f"{e}t{t}"] = Turn(id=f"{e}t{t}", action=action, observation=None if last else observation)
            ids.append(f"{e}t{t}")
            parent, at = observation, 3
        episodes.append(
            Episode(
                id=f"e{e}", task_id="t", group_id="g", sample=e, turns=tuple(ids), leaves=(f"{e}a{n - 1}",)
            )
        )
    return Forest(nodes, turns, tuple(episodes))


def test_at_root_spends_the_budget_once():
    rule = AtRoot(BranchingConfig())
    (branch,) = rule.next(forest([]), 8, RNG)
    assert (branch.node, branch.at, branch.n) == ("root", 4, 8)
    assert rule.next(forest([2]), 7, RNG) == []


def test_random_turn_starts_trees_then_expands_inner_turns():
    rule = RandomTurn(BranchingConfig(name="random_turn", trees=2, rounds=1, expansions=2))
    (start,) = rule.next(forest([]), 6, RNG)
    assert (start.node, start.n) == ("root", 2)
    branches = rule.next(forest([3, 3]), 4, RNG)
    assert sum(b.n for b in branches) == 4
    assert {b.node for b in branches} <= {"0o0", "0o1", "1o0", "1o1"}
    assert all(b.at == 3 for b in branches)
    assert sum(b.n for b in branches if b.node.startswith("0")) == 2


def test_a_tree_without_inner_turns_restarts_at_the_root():
    rule = RandomTurn(BranchingConfig(name="random_turn", trees=2, rounds=1, expansions=2))
    branches = {b.node: b.n for b in rule.next(forest([1, 2]), 4, RNG)}
    assert branches == {"root": 2, "1o0": 2}


def test_random_turn_stops_after_its_rounds_and_never_exceeds_the_budget():
    rule = RandomTurn(BranchingConfig(name="random_turn", trees=1, rounds=1, expansions=2))
    assert sum(b.n for b in rule.next(forest([3]), 1, RNG)) == 1
    assert rule.next(forest([3, 1, 1]), 5, RNG) == []


def test_trees_that_restarted_at_the_root_do_not_make_a_round_larger():
    rule = RandomTurn(BranchingConfig(name="random_turn", trees=2, rounds=2, expansions=2))
    # The first tree could not branch, so round 1 started two more: four trees, three with inner turns.
    branches = rule.next(forest([1, 3, 3, 3, 2, 2]), 4, RNG)
    assert all(b.n > 0 for b in branches)
    assert sum(b.n for b in branches) == 4

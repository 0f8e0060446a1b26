from __future__ import annotations

import pytest

from agent_rl.credit import CreditConfig, make
from agent_rl.types import Annotations, Forest
from tests.agent_rl.forests import ForestBuilder, advantages


def credit(forest: Forest, **options) -> dict[str, set[float]]:
    return advantages(make(CreditConfig(name="group", **options)).credit(forest, Annotations()))


def flat(rewards: list[float]) -> Forest:
    b = ForestBuilder()
    b.flat(rewards)
    return b.forest()


def test_grpo_worked_example() -> None:
    b = ForestBuilder()
    b.flat([1, 0, 0, 1], group="p0")
    b.flat([1, 1, 1], group="p1")
    b.flat([0.7], group="p2")
    found = credit(b.forest())
    expected = [0.866024, -0.866024, -0.866024, 0.866024, 0, 0, 0, 0]
    assert found == {f"e{i}": {a} for i, a in enumerate(expected)}


def test_dr_grpo_worked_example() -> None:
    found = credit(flat([1, 0, 0, 1]), scale="none")
    assert found == {"e0": {0.5}, "e1": {-0.5}, "e2": {-0.5}, "e3": {0.5}}


def test_rloo_worked_example() -> None:
    found = credit(flat([1, 0, 0, 0]), baseline="leave_one_out", scale="none")
    assert found == {"e0": {1.0}, "e1": {-0.333333}, "e2": {-0.333333}, "e3": {-0.333333}}


def supo(**overlong) -> Forest:
    """Reference A1, example 2: R = [1, 0, 0, 0] in 3, 1, 1, 2 chains; the last episode hit its cap."""
    b = ForestBuilder()
    root = b.prompt([1])
    for i, (reward, chains) in enumerate([(1, 3), (0, 1), (0, 1), (0, 2)]):
        node, turns, leaves = root, [], []
        for k in range(chains):
            leaves.append(b.action(node, [2 + k, 9]))
            turns.append(b.turn(leaves[-1], kind="context" if k < chains - 1 else "env"))
            node = b.prompt([1, 5, k])
        b.episode(turns, reward=reward, leaves=leaves, **(overlong if i == 3 else {}))
    return b.forest()


def test_supo_gives_every_chain_the_advantage_of_its_episode() -> None:
    estimator = make(CreditConfig())
    rows = list(estimator.credit(supo(exclude_from_loss=True), Annotations()))
    assert [round(r.advantage, 6) for r in rows] == [1.499997] * 3 + [-0.499999] * 2
    assert len({(r.episode, r.chain) for r in rows}) == 5


def test_supo_overlong_left_out_of_the_baseline() -> None:
    both = {"exclude_from_loss": True, "exclude_from_baseline": True}
    assert credit(supo(**both)) == {"e0": {1.154699}, "e1": {-0.577349}, "e2": {-0.577349}}


def test_the_two_exclusions_are_independent() -> None:
    found = credit(supo(exclude_from_baseline=True), scale="none")
    assert found == {"e0": {0.666667}, "e1": {-0.333333}, "e2": {-0.333333}, "e3": {-0.333333}}
    loo = credit(supo(exclude_from_baseline=True), baseline="leave_one_out", scale="none")
    assert loo == {"e0": {1.0}, "e1": {-0.5}, "e2": {-0.5}, "e3": {-0.333333}}


def test_turn_rewards_join_the_return_and_other_purposes_do_not_vote() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    b.episode([b.turn(b.action(root, [2]), reward=0.5), b.turn(b.action(root, [3]), reward=0.5)])
    b.episode([b.turn(b.action(root, [4]))])
    b.episode([b.turn(b.action(root, [5]))], reward=9, purpose="value")
    assert credit(b.forest(), scale="none") == {"e0": {0.5}, "e1": {-0.5}}


def test_a_shared_prefix_has_a_row_for_each_episode_and_once_in_each() -> None:
    b = ForestBuilder()
    first = b.action(b.prompt([1]), [2, 3])
    seen = b.observation(first, [4])
    left, right = b.action(seen, [5]), b.action(seen, [6])
    inside = b.action(first, [7], at=1)
    start = b.turn(first, seen)
    b.episode([start, b.turn(left)], reward=1, leaves=[left, first])  # a second chain through the same node
    b.episode([start, b.turn(right)])
    b.episode([b.turn(inside)])
    rows = [
        (r.node, r.start, r.end, r.episode) for r in make(CreditConfig()).credit(b.forest(), Annotations())
    ]
    assert rows == [
        (first, 0, 2, "e0"),
        (left, 0, 1, "e0"),
        (first, 0, 2, "e1"),
        (right, 0, 1, "e1"),
        (first, 0, 1, "e2"),
        (inside, 0, 1, "e2"),
    ]


def test_an_action_that_two_chains_hold_in_part_is_trained_once() -> None:
    b = ForestBuilder()
    action = b.action(b.prompt([1]), [2, 3, 4])
    summary = b.action(b.observation(action, [5], at=1), [6])
    b.episode([b.turn(summary, kind="context"), b.turn(action)], leaves=[summary, action])
    rows = [(r.node, r.start, r.end, r.chain) for r in make(CreditConfig()).credit(b.forest(), Annotations())]
    assert rows == [(action, 0, 1, summary), (summary, 0, 1, summary), (action, 1, 3, action)]


def test_discarded_turns_and_faulted_episodes_have_no_rows() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    dropped, kept = b.action(root, [2]), b.action(root, [3])
    b.episode([b.turn(dropped), b.turn(kept)], leaves=[kept], reward=1)
    b.episode([], leaves=[], exclude_from_loss=True, exclude_from_baseline=True)
    rows = list(make(CreditConfig()).credit(b.forest(), Annotations()))
    assert [r.node for r in rows] == [kept]


def test_unknown_name_lists_the_choices_and_a_dotted_path_works() -> None:
    with pytest.raises(ValueError, match=r"'grop' is not known. Did you mean 'group'"):
        make(CreditConfig(name="grop"))
    by_path = make(CreditConfig(name="agent_rl.credit.group:Group"))
    assert by_path.needs == frozenset()

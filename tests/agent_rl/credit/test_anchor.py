from __future__ import annotations

from agent_rl.credit import CreditConfig, make
from agent_rl.types import Annotations, Credits, Forest
from tests.agent_rl.forests import ForestBuilder


def credit(forest: Forest, **options) -> Credits:
    return make(CreditConfig(name="anchor", **options)).credit(forest, Annotations())


def per_row(credits: Credits) -> list[float]:
    return [round(r.advantage, 6) for r in credits]


def walks(*walks: tuple[list[str], float], turn_reward: bool = False) -> Forest:
    """Episodes of one group as the states they pass and the reward at their end."""
    b = ForestBuilder()
    root = b.prompt([1])
    for states, reward in walks:
        node, turns = root, []
        for i, state in enumerate(states):
            action = b.action(node, [2 + i])
            node = b.observation(action, [9])
            last = i == len(states) - 1
            turns.append(
                b.turn(action, node, state_key=state, reward=reward if last and turn_reward else 0.0)
            )
        b.episode(turns, reward=0.0 if turn_reward else reward)
    return b.forest()


EXAMPLE = [(["s0", "s1", "s2"], 1.0), (["s0", "s3"], 0.0), (["s0", "s1", "s1", "s4"], 0.0)]


def test_worked_example_1() -> None:
    expected = [1.268333, 1.3, 0.666667, -0.634167, -0.333333, -0.634167, -0.65, -0.65, -0.333333]
    assert per_row(credit(walks(*EXAMPLE))) == expected
    assert per_row(credit(walks(*EXAMPLE, turn_reward=True))) == expected


def test_episode_term_and_step_term_of_worked_example_1() -> None:
    assert per_row(credit(walks(*EXAMPLE), step_weight=0.0)) == [0.666667] * 3 + [-0.333333] * 6
    both, episode = credit(walks(*EXAMPLE)), credit(walks(*EXAMPLE), step_weight=0.0)
    steps = [round(float(x), 6) for x in both.advantages - episode.advantages]
    assert steps == [0.601667, 0.633333, 0, -0.300833, 0, -0.300833, -0.316667, -0.316667, 0]


def test_worked_example_2_takes_statistics_over_episodes() -> None:
    forest = walks((["a"], 1.0), (["b", "c", "d"], 0.0))
    assert per_row(credit(forest)) == [0.5, -0.5, -0.5, -0.5]


def test_mean_std_norm_divides_both_terms() -> None:
    # Episode and step term: +-0.5 / 0.707107 each, gamma has one step and no effect.
    forest = walks((["s"], 1.0), (["s"], 0.0))
    assert per_row(credit(forest, scale="std")) == [1.414212, -1.414212]


def test_groups_are_not_mixed_and_turns_without_a_key_have_no_anchor() -> None:
    b = ForestBuilder()
    for group, reward in [("g", 1.0), ("g", 0.0), ("h", 0.0)]:
        action = b.action(b.prompt([1]), [2])
        summary = b.action(b.observation(action, [3]), [4])
        turns = [b.turn(action, state_key="s"), b.turn(summary, kind="context")]
        b.episode(turns, reward=reward, group=group)
    # g: returns at s are 0.95 and 0, so the step term is +-0.475.
    assert per_row(credit(b.forest())) == [0.975, 0.5, -0.975, -0.5, 0, 0]


def test_a_discarded_turn_is_in_the_return_and_trains_nothing() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    for reward in (1.0, 0.0):
        kept, dropped = b.action(root, [2]), b.action(root, [3])
        last = b.action(b.observation(kept, [4]), [5])
        turns = [
            b.turn(kept, state_key="s"),
            b.turn(dropped, reward=reward, state_key="x"),
            b.turn(last, state_key="y"),
        ]
        b.episode(turns, leaves=[last])
    # Totals 1 and 0: +-0.5. At s: 0.95 and 0: +-0.475. At y: 0 and 0.
    credits = credit(b.forest())
    assert per_row(credits) == [0.975, 0.5, -0.975, -0.5]


def test_exclusions_are_independent() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    for reward, flags in [
        (1.0, {}),
        (0.0, {}),
        (5.0, {"exclude_from_baseline": True}),
        (0.0, {"exclude_from_loss": True}),
    ]:
        b.episode([b.turn(b.action(root, [2]), state_key="s")], reward=reward, **flags)
    credits = credit(b.forest())
    assert credits.episodes == ("e0", "e1", "e2")  # mean over e0, e1, e3 is 1/3; both terms are equal
    assert per_row(credits) == [1.333333, -0.666667, 9.333333]


def test_the_cut_action_before_a_branch_belongs_to_the_turn_it_begins() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    whole = b.action(root, [2, 3])
    branch = b.action(whole, [4], at=1)
    b.episode([b.turn(whole, state_key="s")], reward=1)
    b.episode([b.turn(branch, state_key="s")], reward=0)
    credits = credit(b.forest())
    assert credits.nodes == (whole, whole, branch)
    assert per_row(credits) == [1.0, -1.0, -1.0]


def test_the_scale_defaults_to_mean_norm_and_can_be_set() -> None:
    assert CreditConfig(name="anchor").scale == "none"
    assert CreditConfig(name="anchor", scale="std").scale == "std"
    assert CreditConfig(name="group").scale == "std"

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_rl.credit import CreditConfig, make
from agent_rl.types import Annotations
from tests.agent_rl.forests import ForestBuilder, random_forest

CONFIGS = [
    CreditConfig(name="group"),
    CreditConfig(name="group", baseline="leave_one_out", scale="none"),
    CreditConfig(name="anchor"),
    CreditConfig(name="tree"),
    CreditConfig(name="tree", rule="tree_rl"),
    CreditConfig(name="demonstration"),
]


@given(st.integers(0, 10**6), st.sampled_from(CONFIGS))
@settings(max_examples=60, deadline=None)
def test_rows_are_action_tokens_of_their_chain_once_per_episode(seed: int, config: CreditConfig) -> None:
    forest = random_forest(seed)
    credits = make(config).credit(forest, Annotations())
    seen: set[tuple[str, str, int]] = set()
    for row in credits:
        spans = {s.node: s.end for s in forest.actions(row.chain)}
        assert 0 <= row.start < row.end <= spans[row.node]
        tokens = {(row.episode, row.node, t) for t in range(row.start, row.end)}
        assert not tokens & seen
        seen |= tokens
    assert np.all(np.isfinite(credits.advantages))


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=8))
@settings(max_examples=50, deadline=None)
def test_group_advantages_sum_to_0_and_shift_does_not_matter(rewards: list[float]) -> None:
    def credit(offset: float) -> np.ndarray:
        b = ForestBuilder()
        b.flat([r + offset for r in rewards])
        return make(CreditConfig()).credit(b.forest(), Annotations()).advantages

    assert credit(0.0).sum() == pytest.approx(0.0, abs=1e-9)
    assert credit(0.0) == pytest.approx(credit(2.0), abs=1e-9)


def test_demonstrations_have_advantage_1_whatever_their_reward() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    b.episode([b.turn(b.action(root, [2], demonstration=True))], reward=0)
    b.episode([b.turn(b.action(root, [3]))], reward=1)
    b.episode([b.turn(b.action(root, [4]))], exclude_from_loss=True)
    rows = list(make(CreditConfig(name="demonstration")).credit(b.forest(), Annotations()))
    assert [(r.episode, r.advantage, r.weight) for r in rows] == [("e0", 1.0, 1.0), ("e1", 1.0, 1.0)]

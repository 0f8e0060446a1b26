"""Waves: all live episodes wait, then their requests go out in the order of their keys."""

from agent_rl.branching import BranchingConfig
from tests.agent_rl import toy


def order(deterministic, branching=None, tasks=4):
    engine = toy.engine(toy.look_then_submit)
    toy.collect(
        toy.collector(engine, deterministic=deterministic, branching=branching), tasks=tasks, group_size=3
    )
    return [tuple(map(str, sampling.seed)) for _, sampling in engine.requests]


def test_requests_arrive_in_the_same_order_whatever_the_threads_do(monkeypatch):
    monkeypatch.setattr(toy.LookEnv, "breaks", staticmethod(toy.slow), raising=False)
    first = order(True)
    assert len(first) == 24
    assert first[:12] == sorted(first[:12])
    assert all(order(True) == first for _ in range(4))


def test_rounds_of_a_tree_wait_for_one_another(monkeypatch):
    monkeypatch.setattr(toy.LookEnv, "breaks", staticmethod(toy.slow), raising=False)
    rule = BranchingConfig(name="random_turn", trees=1, rounds=2, expansions=1)
    first = order(True, rule, tasks=3)
    assert all(order(True, rule, tasks=3) == first for _ in range(4))

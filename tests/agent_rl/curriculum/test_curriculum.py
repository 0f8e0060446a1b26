from collections import Counter

import pytest

from agent_rl.curriculum import CurriculumConfig, DynamicFilter, Uniform, make
from agent_rl.types import Episode, Forest
from envs.types import RewardComponent, Task

TASKS = [Task(id=f"t{i}", env="toy", prompt=()) for i in range(5)]


def test_a_pass_ends_before_any_task_comes_twice_and_a_restored_cursor_continues():
    curriculum = Uniform(CurriculumConfig(), TASKS, seed=3)
    first = [r.task.id for s in range(5) for r in curriculum.sample(s, 3)]
    assert all(count == 3 for count in Counter(first).values())
    assert sorted(first[:5]) == sorted(t.id for t in TASKS)
    again = Uniform(CurriculumConfig(), TASKS, seed=3)
    again.restore({"cursor": 9})
    assert [r.task.id for r in again.sample(0, 6)] == first[9:]


def episode(group: str, sample: int, reward: float, *, excluded: bool = False) -> Episode:
    return Episode(
        id=f"{group}.{sample}",
        task_id="t",
        group_id=group,
        sample=sample,
        rewards=(RewardComponent(name="correct", value=reward),),
        exclude_from_baseline=excluded,
    )


def test_the_dynamic_filter_keeps_what_the_reference_keeps():
    # R = [1,1,0,1,0,0], ids = [a,a,b,b,c,c]: only b has spread (D4)
    rewards = [("a", 1), ("a", 1), ("b", 0), ("b", 1), ("c", 0), ("c", 0)]
    forest = Forest(episodes=tuple(episode(g, i, r) for i, (g, r) in enumerate(rewards)))
    rule = make(CurriculumConfig(name="dynamic_filter"), TASKS, 0)
    assert isinstance(rule, DynamicFilter)
    assert rule.filter(forest) == ["b"]
    assert Uniform(CurriculumConfig(), TASKS, 0).filter(forest) == ["a", "b", "c"]


def test_a_group_of_one_is_kept_and_an_excluded_episode_makes_no_spread():
    forest = Forest(
        episodes=(episode("one", 0, 1), episode("two", 1, 1), episode("two", 2, 0, excluded=True))
    )
    assert DynamicFilter(CurriculumConfig(), TASKS, 0).filter(forest) == ["one"]


def test_no_tasks_is_an_error():
    with pytest.raises(ValueError, match="at least one task"):
        Uniform(CurriculumConfig(), [], 0)

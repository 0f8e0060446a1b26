from __future__ import annotations

from dataclasses import replace

import pytest

from envs import registry
from envs.checker.subject import play
from envs.errors import TaskError
from envs.types import FaultError
from envs.web.grading import expected, judge, same
from envs.web.plans import LEVELS, Change
from envs.web.policies import Reader, follow
from envs.web.tasks import generate, place_of, plan_of

BEFORE = {"cart": [], "items": [{"id": 1, "a": 1}, {"id": 2, "a": 1}]}


def test_the_verdict_wants_the_goal_and_nothing_else() -> None:
    goal = [Change("set", "items", {"a": 5}, 1), Change("add", "items", {"a": 7})]
    done = {"cart": [], "items": [{"id": 1, "a": 5}, {"id": 2, "a": 1}, {"id": 3, "a": 7}]}
    assert judge(BEFORE, goal, done).scalar == 1
    more = {**done, "cart": [{"owner": "x"}]}
    verdict = judge(BEFORE, goal, more)
    assert verdict.scalar == 0
    assert {c.name: c.value for c in verdict.components} == {"solved": 0.0, "reached": 1.0}
    for wrong in (
        BEFORE,
        {**done, "items": done["items"][:2]},
        {**done, "items": [*done["items"], done["items"][2]]},
    ):
        assert judge(BEFORE, goal, wrong).scalar == 0


def test_a_new_row_may_have_any_id_but_no_old_one() -> None:
    goal = [Change("add", "items", {"a": 7})]
    late = {"cart": [], "items": [*BEFORE["items"], {"id": 9, "a": 7}]}
    assert judge(BEFORE, goal, late).scalar == 1
    renamed = {"cart": [], "items": [{"id": 8, "a": 1}, {"id": 2, "a": 1}, {"id": 9, "a": 7}]}
    assert judge(BEFORE, goal, renamed).scalar == 0


@pytest.mark.parametrize("level", LEVELS)
def test_generated_tasks_are_sound_and_drawn_again_alike(level: int) -> None:
    tasks = generate("train", 9, 1, level=level)
    assert tasks == generate("train", 9, 1, level=level)
    assert tasks[:4] == generate("train", 4, 1, level=level)
    assert {task.metadata["site"] for task in tasks} == {"shop", "tracker", "wiki"}
    for task in tasks:
        plan, before = plan_of(task), place_of(task).rows
        gold = expected(before, plan.gold.changes)
        assert len(plan.misses) >= 3
        assert not any(same(before, gold, expected(before, miss.changes)) for miss in plan.misses.values())
        assert not same(before, gold, before)


def test_splits_share_no_word() -> None:
    names: dict[str, str] = {}
    for split in ("train", "validation", "test"):
        for task in generate(split, 12, 0, level=2):
            for user in place_of(task).rows["users"]:
                assert names.setdefault(user["name"], split) == split


@pytest.mark.parametrize(
    "options", [{"level": 4}, {"level": True}, {"level": -1}, {"site": "bank"}, {"level": "1"}]
)
def test_unknown_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is one of"):
        generate("train", 1, 0, **options)  # type: ignore[arg-type]


def test_malformed_tasks_are_faults_of_the_task() -> None:
    (task,) = generate("train", 1, 0)
    for bad in (
        replace(task, data={}),
        replace(task, data={**task.data, "level": 9}),
        replace(task, answer=None),
        replace(task, answer={"plan": "no_such", "draw": 0}),
    ):
        with pytest.raises(TaskError):
            plan_of(bad)
        env = registry.make("web-v1")
        with pytest.raises(FaultError) as caught:
            env.reset(options={"task": bad})
        assert caught.value.fault.kind == "task"
        env.close()


@pytest.mark.parametrize("level", LEVELS)
def test_gold_scores_one_and_every_near_miss_zero_when_played(level: int) -> None:
    env = registry.make("web-v1")
    gold = type(env).policies()["gold"]
    for task in generate("test", 3, 5, level=level):
        assert play(env, gold.make(task, 0), task).score == 1
        for name, miss in plan_of(task).misses.items():
            seen = play(env, Reader(follow(miss.steps)), task)
            assert seen.score == 0, name
            assert seen.steps[-1].info["stop"] == "submitted", name
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_many_near_misses_leave_what_their_plan_says(level: int) -> None:
    from envs.web.stages import SiteStage

    for task in generate("train", 30, 7, level=level):
        before = place_of(task).rows
        for name, miss in {**plan_of(task).misses, "gold": plan_of(task).gold}.items():
            env = registry.make("web-v1", max_turns=80)
            messages, _ = env.reset(options={"task": task})
            policy, said, found = Reader(follow(miss.steps)), list(messages), {}
            while not env.over:
                action = policy.act(said, env.tools)
                if action["tool_calls"][0]["function"]["name"] == "finish":
                    stage = env._stage  # type: ignore[attr-defined]
                    assert isinstance(stage, SiteStage)
                    found = stage._world.rows()
                step = env.step(action)
                said += [action, *step.observation]
            assert same(before, expected(before, miss.changes), found), (name, task.prompt[-1]["content"])
            env.close()

from __future__ import annotations

import dataclasses

import pytest

from envs.code import grading
from envs.code.attacks import ATTACKS
from envs.code.env import CodeEnv
from envs.code.policies import POLICIES, STOP_RATE, WRONG_RATES
from envs.errors import NoGoldError
from envs.types import Step, Task
from tools.types import Message

TASKS = CodeEnv.tasks("test", 4, 0)
FORMS = [CodeEnv.tasks("test", 1, 1, level=0, form=form)[0] for form in ("function", "program", "edit")]


@pytest.fixture(autouse=True)
def _short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "CPU_S", 1)  # the endless attack need not be paid for in full


def play(backend: str, name: str, task: Task, seed: int = 0) -> Step:
    env = CodeEnv(backend=backend)
    policy = POLICIES[name].make(task, seed)
    first, _ = env.reset(options={"task": task})
    messages: list[Message] = list(first)
    while True:
        action = policy.act(messages, env.tools)
        step = env.step(action)
        messages += [action, *step.observation]
        if step.terminated or step.truncated:
            env.close()
            return step


def test_kinds() -> None:
    kinds = [spec.kind for spec in POLICIES.values()]
    assert kinds[:3] == ["gold", "sloppy", "noop"]
    assert kinds.count("attack") >= 5
    assert CodeEnv.policies() == POLICIES


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"level{task.metadata['level']}")
def test_gold_scores_one_and_noop_zero(backend: str, task: Task) -> None:
    assert play(backend, "gold", task).reward == 1.0
    assert play(backend, "noop", task).reward == 0.0


@pytest.mark.parametrize("task", FORMS, ids=("function", "program", "edit"))
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_score_zero(backend: str, name: str, task: Task) -> None:
    hidden = Task(id=task.id, env=task.env, prompt=task.prompt, data=task.data)
    policy = POLICIES[name].make(hidden, 0)  # without an answer to read
    env = CodeEnv(backend=backend)
    messages: list[Message] = list(env.reset(options={"task": task})[0])
    for _ in range(env.max_turns):
        action = policy.act(messages, env.tools)
        step = env.step(action)
        messages += [action, *step.observation]
        if step.terminated or step.truncated:
            break
    env.close()
    assert (step.terminated, step.reward) == (True, 0.0)


def test_sloppy_is_right_at_its_declared_rate() -> None:
    """By its actions alone: it submits the reference, a near miss, or nothing."""
    task = FORMS[0]
    right = 0
    for seed in range(400):
        policy = POLICIES["sloppy"].make(task, seed)
        actions = [policy.act([], [{"name": "x", "description": "", "parameters": {}}]) for _ in range(3)]
        submitted = [
            call["function"]["arguments"]["code"]
            for action in actions
            for call in action.get("tool_calls", [])
            if call["function"]["name"] == "submit"
        ]
        right += submitted == [task.answer["solution"]]
    assert abs(right / 400 - (1 - WRONG_RATES[0]) * (1 - STOP_RATE)) < 0.08


@pytest.mark.parametrize("task", FORMS, ids=("function", "program", "edit"))
def test_trivial_answers_score_zero(backend: str, task: Task) -> None:
    env = CodeEnv(backend=backend)
    made = CodeEnv.trivial_policies(FORMS)
    assert {"none", "echo", "frequent1", "candidates"} <= set(made)
    for spec in made.values():
        assert spec.kind == "trivial"
        messages = list(env.reset(options={"task": task})[0])
        assert env.step(spec.make(task, 0).act(messages, env.tools)).reward == 0.0
    env.close()


def test_a_task_without_a_solution_has_no_gold() -> None:
    task = dataclasses.replace(FORMS[0], answer={**FORMS[0].answer, "solution": None})
    with pytest.raises(NoGoldError, match="no solution"):
        POLICIES["gold"].make(task, 0)

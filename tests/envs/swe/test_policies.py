from __future__ import annotations

import pytest

from envs.swe.attacks import ATTACKS
from envs.swe.env import SweEnv
from envs.types import Task
from tests.envs.swe.plays import played

TASK: Task = SweEnv.tasks("test", 1, 2, level=0)[0]
HARD: Task = SweEnv.tasks("test", 1, 2, level=3)[0]
FOOLS_PYTEST = (
    "patched_runner_by_name",
    "forged_report",
    "exit_in_function",
    "always_equal",
    "forged_replay",
)
"""Attacks that pass everything that pytest can say: only the replayed calls stop them."""
QUICK = ("patched_runner", *FOOLS_PYTEST[:2], "conftest_hooks", "forged_lines")
SLOW = tuple(name for name in ATTACKS if name not in QUICK)


@pytest.mark.parametrize("task", [TASK, HARD], ids=["level0", "level3"])
def test_gold_scores_one_and_noop_zero(backend: str, task: Task) -> None:
    assert played(backend, "gold", task)[0].score == 1.0
    assert played(backend, "noop", task)[0].score == 0.0


def _attack(backend: str, name: str) -> None:
    seen, evidence = played(backend, name, TASK)
    assert seen.score == 0.0
    assert seen.steps[-1].terminated
    run = evidence["tests"]
    complete = (run["fail_to_pass"], run["pass_to_pass"]) == (
        evidence["fail_to_pass"],
        evidence["pass_to_pass"],
    )
    assert (run["sound"] and complete) == (name in FOOLS_PYTEST)
    if name in FOOLS_PYTEST:
        assert evidence["replay"]["passed"] < evidence["replay"]["total"]


@pytest.mark.parametrize("name", QUICK)
def test_attacks_score_zero(backend: str, name: str) -> None:
    _attack(backend, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_attacks_score_zero(backend: str, name: str) -> None:
    _attack(backend, name)


def test_sloppy_is_right_less_often_the_more_there_is_to_repair() -> None:
    """By its actions alone: it submits after putting every original back."""

    def rate(task: Task) -> float:
        wanted = [edit["new"] for edits in task.answer["edits"].values() for edit in edits]
        right = 0
        for seed in range(300):
            policy = SweEnv.policies()["sloppy"].make(task, seed)
            tool = {"name": "x", "description": "", "parameters": {}}
            actions = [policy.act([], [tool]) for _ in range(10)]  # type: ignore[list-item]
            used = [c["function"] for action in actions for c in action.get("tool_calls", [])]
            written = [f["arguments"]["new"] for f in used if f["name"] == "edit"]
            right += written == wanted and used[-1:] != [] and used[-1]["name"] == "submit"
        return right / 300

    assert abs(rate(TASK) - 0.9 * 0.75) < 0.09
    assert abs(rate(HARD) - 0.9 * (0.75 * 0.85) ** 3) < 0.09

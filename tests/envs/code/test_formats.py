"""One small file in each real format: read, judged, and bad rows reported."""

from __future__ import annotations

import base64
import io
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

import sandbox
from envs.checker.survey import survey
from envs.code.env import CodeEnv
from envs.code.formats.live_code_bench import unpack
from envs.code.grading import grading_spec, judge
from envs.formats import BadRow
from envs.types import Task

MBPP = [
    {
        "task_id": 2,
        "text": "Write a function to find the shared elements from the given two lists.",
        "code": "def similar(a, b):\r\n\treturn tuple(set(a) & set(b))",
        "test_list": [
            "assert set(similar((3, 4, 5), (5, 7, 4))) == set((4, 5))",
            "assert set(similar((1,), (2,))) == set(())",
        ],
        "test_setup_code": "",
        "challenge_test_list": [],
    },
    {
        "task_id": 3,
        "prompt": "Write a function for the area of a circle.",
        "code": "def area(r):\n    return 3.14159 * r * r",
        "test_list": ["assert math.isclose(area(2), 12.566, rel_tol=0.01)", "assert area(0) == 0"],
        "test_imports": ["import math"],
    },
    {"task_id": 4, "text": "x", "code": "def f(x):\n    return x", "test_list": ["assert f(1) > 0"]},
    {"task_id": 5, "text": "x", "code": "def f(x):\n    return x", "test_list": "assert f(1) == 1"},
]
PLUS = {
    "task_id": "HumanEval/0",
    "prompt": "def mean(xs: list) -> float:\n    '''Mean of the numbers; 0 for none.'''\n",
    "entry_point": "mean",
    "canonical_solution": "    return sum(xs) / len(xs) if xs else 0.0\n",
    "base_input": [[[1, 2]], [[]]],
    "plus_input": [[[0.1, 0.2, 0.3]]],
    "atol": 1e-6,
    "contract": "",
}
PROGRAM = "n = int(input())\nprint(sum(int(input()) for _ in range(n)))\n"
METHOD = (
    "class Solution:\n    def twice(self, xs: List[int]) -> List[int]:\n        return [2 * x for x in xs]\n"
)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def passes(backend: str, task: Task, source: str) -> bool:
    with sandbox.create(grading_spec(), backend=backend) as fresh:
        return judge(fresh, task, source).solved


def test_mbpp(tmp_path: Path, backend: str) -> None:
    found = CodeEnv.read_tasks(write(tmp_path / "mbpp.jsonl", MBPP))
    assert [t.metadata["name"] for t in found.tasks] == ["2", "3"]
    assert [(e.line, e.field) for e in found.errors] == [(3, "test_list"), (4, "test_list")]
    similar, area = found.tasks
    assert [t["rule"]["name"] for t in similar.answer["tests"]] == ["members", "members"]
    assert "assert set(similar((3, 4, 5), (5, 7, 4)))" in similar.prompt[0]["content"]
    assert "similar((1,), (2,))" not in similar.prompt[0]["content"]
    assert passes(backend, similar, "def similar(a, b):\n    return [x for x in b if x in a]")
    assert not passes(backend, similar, "def similar(a, b):\n    return [4, 5]")
    assert passes(backend, area, "import math\ndef area(r):\n    return math.pi * r ** 2")
    assert not passes(backend, area, "def area(r):\n    return 3.2 * r ** 2")


def test_evalplus(tmp_path: Path, backend: str) -> None:
    failing = {**PLUS, "task_id": "HumanEval/1", "canonical_solution": "    return sum(xs) / len(xs)\n"}
    found = CodeEnv.read_tasks(write(tmp_path / "plus.jsonl", [PLUS, failing]))
    (task,) = found.tasks
    assert [t["expected"] for t in task.answer["tests"]] == [1.5, 0.0, 0.20000000000000004]
    assert "fails on input 2" in found.errors[0].message
    assert passes(backend, task, "def mean(xs):\n    return round(sum(xs) / len(xs), 8) if xs else 0")
    assert not passes(
        backend, task, "def mean(xs):\n    return round(sum(xs) / len(xs), 1) + 1e-5 if xs else 0"
    )


def apps(folder: Path) -> Path:
    cases = {"inputs": ["2\n3\n4\n", "0\n"], "outputs": ["7\n", "0"]}
    method = {"fn_name": "twice", "inputs": [[[1, 2]], [[]]], "outputs": [[[2, 4]], [[]]]}
    problems: dict[str, dict[str, str]] = {
        "0000": {
            "question.txt": "Sum n numbers.",
            "input_output.json": json.dumps(cases),
            "solutions.json": json.dumps([PROGRAM]),
            "metadata.json": json.dumps({"difficulty": "interview"}),
        },
        "0001": {
            "question.txt": "Double every number.",
            "input_output.json": json.dumps(method),
            "solutions.json": json.dumps([METHOD]),
            "starter_code.py": "class Solution:\n    def twice(self, xs: List[int]) -> List[int]:\n",
        },
        "0002": {"question.txt": "Broken.", "input_output.json": "{"},
    }
    for name, files in problems.items():
        (folder / name).mkdir(parents=True)
        for file, text in files.items():
            (folder / name / file).write_text(text)
    return folder


def test_apps_folders(tmp_path: Path, backend: str) -> None:
    found = CodeEnv.read_tasks(apps(tmp_path / "train"))
    assert [t.metadata["name"] for t in found.tasks] == ["0000", "0001"]
    assert [(e.line, e.field) for e in found.errors] == [(3, "input_output")]
    program, method = found.tasks
    assert passes(backend, program, PROGRAM)
    assert not passes(backend, program, "print(7)")
    assert method.answer["tests"] == [
        {"input": [[1, 2]], "expected": [2, 4]},
        {"input": [[]], "expected": []},
    ]
    assert passes(backend, method, METHOD)
    assert passes(backend, method, METHOD.replace("[2 * x for x in xs]", "tuple(x + x for x in xs)"))
    assert not passes(backend, method, METHOD.replace("2 *", "3 *"))


def test_apps_rows(tmp_path: Path) -> None:
    row = {"problem_id": 7, "question": "Sum.", "solutions": json.dumps([PROGRAM]), "starter_code": ""}
    cases = json.dumps({"inputs": ["1\n1\n"], "outputs": ["1\n"]})
    uneven = json.dumps({"inputs": ["1\n1\n"], "outputs": []})
    path = write(tmp_path / "apps.jsonl", [{**row, "input_output": cases}, {**row, "input_output": uneven}])
    found = CodeEnv.read_tasks(path)
    assert [t.metadata["source"] for t in found.tasks] == ["apps"]
    assert found.errors[0].message == "one output an input is needed, got 1 and 0"


def pack(value: Any) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def live(**changes: Any) -> dict[str, Any]:
    public = [{"input": "1\n5\n", "output": "5\n", "testtype": "stdin"}]
    private = [{"input": "2\n1\n2\n", "output": "3", "testtype": "stdin"}]
    return {
        "question_title": "Sum",
        "question_content": "Sum n numbers.",
        "platform": "atcoder",
        "question_id": "abc1",
        "contest_date": "2024-01-01",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps(public),
        "private_test_cases": pack(json.dumps(private)),
        "metadata": "{}",
        **changes,
    }


def test_live_code_bench(tmp_path: Path, backend: str) -> None:
    functional = [{"input": "[1, 2]", "output": "[2, 4]", "testtype": "functional"}]
    method = live(
        question_id="lc1",
        starter_code="class Solution:\n    def twice(self, xs: List[int]) -> List[int]:\n        ",
        public_test_cases=json.dumps(functional),
        private_test_cases=json.dumps([{"input": "[]", "output": "[]", "testtype": "functional"}]),
        metadata=json.dumps({"func_name": "twice"}),
    )
    hostile = live(question_id="x", private_test_cases=pack(io.BytesIO))
    empty = live(question_id="y", private_test_cases="[]", public_test_cases="[]")
    path = write(
        tmp_path / "lcb.jsonl",
        [live(), method, hostile, empty],
    )
    found = CodeEnv.read_tasks(path)
    assert [t.metadata["name"] for t in found.tasks] == ["abc1", "lc1"]
    assert [(e.line, e.field) for e in found.errors] == [(3, "private_test_cases"), (4, "private_test_cases")]
    assert "only text is accepted" in found.errors[0].message
    program, function = found.tasks
    assert program.data["examples"] == [["1\n5\n", "5\n"]]
    assert passes(backend, program, PROGRAM)
    assert passes(backend, program, PROGRAM.replace("print(", "print(1.0 * "))
    assert passes(backend, function, METHOD)
    assert not passes(backend, function, METHOD.replace("2 *", "3 *"))


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        ("not base64!", "neither JSON nor packed text"),
        (base64.b64encode(b"no zlib").decode(), "neither JSON nor packed text"),
        (pack(["text"]), "the pickle holds list"),
        (base64.b64encode(zlib.compress(b"cos\nsystem\n(S'true'\ntR.")).decode(), "asks for os.system"),
        (base64.b64encode(zlib.compress(b"(lp0\n0")).decode(), "pickle|packed"),
    ],
)
def test_a_pickle_makes_texts_and_nothing_else(packed: str, message: str) -> None:
    with pytest.raises(BadRow, match=message):
        unpack(packed)


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envs.code.formats.live_code_bench.MAX_CASES_BYTES", 1000)
    with pytest.raises(BadRow, match="more than 1000 bytes once unpacked"):
        unpack(pack("a" * 2000))


@pytest.mark.slow
def test_a_users_file_is_surveyed(tmp_path: Path, backend: str) -> None:
    guessable = {
        "task_id": 9,
        "text": "Write a function that says whether n is positive.",
        "code": "def positive(n):\n    return n > 0",
        "test_list": ["assert positive(1) == True", "assert positive(2) == True"],
    }
    found = CodeEnv.read_tasks(write(tmp_path / "mbpp.jsonl", [MBPP[0], guessable]))
    report = survey("code-v1", found.tasks, errors=found.errors)
    sound, passable = report.findings
    assert (sound.finding, sound.gold) == ("sound", 1.0)
    assert "trivial 'true' scores 1" in passable.reason
    unproven = survey("code-v1", CodeEnv.read_tasks(write(tmp_path / "lcb.jsonl", [live()])).tasks)
    assert [f.finding for f in unproven.findings] == ["unproven"]
    assert unproven.passed

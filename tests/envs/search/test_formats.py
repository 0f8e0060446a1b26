from __future__ import annotations

from pathlib import Path

import pytest

from envs.checker.survey import survey
from envs.search.env import SearchEnv
from tests.envs.search.samples import DOCUMENTS, HOTPOTQA, QUESTIONS, write

GOLDS = {
    "hotpotqa": [["Ilmen"], ["yes"]],
    "nq-open": [["Tessa Vark", "T. Vark"], ["the hills of Ilmen"]],
    "flashrag": [["Tessa Vark"], ["Odo Brand"]],
    "verl": [["Odo Brand"]],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_format_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    found = SearchEnv.read_tasks(write(tmp_path / "q.jsonl", QUESTIONS[name]))
    assert found.errors == ()
    assert [task.answer["golds"] for task in found.tasks] == GOLDS[name]
    assert all(gold not in str(task.prompt[:1]) for task in found.tasks for gold in task.answer["golds"])


def test_hotpotqa_keeps_its_corpus_and_support(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", HOTPOTQA)
    first, second = SearchEnv.read_tasks(path).tasks
    assert first.data == {"corpus": str(path)}
    assert (len(first.answer["path"]), len(second.answer["path"])) == (2, 1)
    assert first.metadata["type"] == "bridge"


def test_each_bad_row_is_named_and_the_rest_is_loaded(tmp_path: Path) -> None:
    rows = [
        {"question": "a", "answer": ["b"]},
        {"question": "", "answer": ["b"]},
        {"question": "a", "answer": ["..."]},
        {"question": "a", "answer": "text"},
        {"answer": ["b"]},
        {"question": "\ud800", "answer": ["b"]},
    ]
    found = SearchEnv.read_tasks(write(tmp_path / "q.jsonl", rows), format="nq-open")
    assert len(found.tasks) == 1
    assert [(e.line, e.field) for e in found.errors] == [
        (2, "question"),
        (3, "answer"),
        (4, "answer"),
        (5, "question"),
        (6, "question"),
    ]


def test_parquet_needs_pyarrow_or_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(QUESTIONS["verl"]), tmp_path / "q.parquet")
    (task,) = SearchEnv.read_tasks(tmp_path / "q.parquet").tasks
    assert task.prompt[-1]["content"] == "who taught tessa vark"


@pytest.mark.parametrize("name", QUESTIONS)
def test_users_tasks_are_tried_against_trivial_answers(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_RL_SEARCH_CORPUS", str(write(tmp_path / "c.jsonl", DOCUMENTS)))
    path = write(tmp_path / "q.jsonl", QUESTIONS[name])
    report = survey("search-v1", SearchEnv.read_tasks(path).tasks)
    findings = {finding.task_id: (finding.finding, finding.reason) for finding in report.findings}
    found = {("sound", "")}
    if name == "hotpotqa":  # a question that yes answers can be passed by a constant, and that is told
        found |= {("passable", "trivial 'yes' scores 1")}
    assert set(findings.values()) == found

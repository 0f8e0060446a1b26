from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from envs.checker.survey import survey
from envs.policies import call
from envs.sql.env import SqlEnv
from envs.taskrows import TaskFile
from envs.types import Task
from tests.envs.sql.samples import build


def read(tmp_path: Path, name: str, file: str = "") -> TaskFile:
    return SqlEnv.read_tasks(build(tmp_path, name) / file)


def score(task: Task, sql: str) -> float:
    env = SqlEnv()
    env.reset(options={"task": task})
    try:
        return float(env.step(call("submit", sql=sql)).reward)
    finally:
        env.close()


def shown(task: Task, action: str, **arguments: str) -> str:
    env = SqlEnv()
    env.reset(options={"task": task})
    try:
        return env.step(call(action, **arguments)).observation[0]["content"]
    finally:
        env.close()


FILES = [
    ("bird", "dev.json"),
    ("bird", ""),
    ("spider", "dev.json"),
    ("spider", ""),
    ("synsql", "data.json"),
    ("spider2", "spider2-lite.jsonl"),
    ("spider2", ""),
    ("rows", "tasks.jsonl"),
]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_every_format_is_recognised_and_its_tasks_are_sound(tmp_path: Path, name: str, file: str) -> None:
    found = read(tmp_path, name, file)
    assert found.tasks
    quick = replace(found.tasks[0], data={**found.tasks[0].data, "time_s": 0.5})  # one attack never ends
    report = survey("sql-v1", [quick])
    assert report.passed, report.text()
    for task in found.tasks:
        if task.answer["sql"]:
            assert score(task, task.answer["sql"]) == 1.0
        assert str(tmp_path) not in json.dumps(list(task.prompt))


def test_bird(tmp_path: Path) -> None:
    found = read(tmp_path, "bird", "dev.json")
    rate, charter = found.tasks
    assert rate.prompt[-1]["content"].endswith(
        "\n\nExternal knowledge: Eligible free rate = Free Meal Count / Enrollment"
    )
    assert rate.metadata == {"format": "bird", "db_id": "school", "question_id": 0, "difficulty": "simple"}
    assert shown(rate, "list_tables") == "schools, frpm"
    assert shown(rate, "describe", table="frpm").splitlines() == [
        "CDSCode TEXT -> schools.CDSCode: code of the school",
        "County Name TEXT: county",
        "Free Meal Count REAL: number of free meals",
        "Enrollment REAL: students enrolled in grades K-12; commonsense evidence: eligible free rate = Free Meal "
        "Count / Enrollment",
    ]
    assert [(error.line, error.field) for error in found.errors] == [
        (3, "SQL"),
        (4, "db_id"),
        (5, "db_id"),
        (6, "SQL"),
    ]
    assert "no such column: nope" in found.errors[0].message
    assert "not authorized" in found.errors[3].message
    # 90 / 120 = 0.75; a set has no order and no duplicates, and 0.75 is not '0.75'
    assert score(rate, "SELECT 0.75") == 1.0  # one database cannot tell a literal: the survey can
    assert score(rate, "SELECT '0.75'") == 0.0
    assert score(charter, "VALUES ('Summit'), ('Envision'), ('Summit')") == 1.0
    assert score(charter, "VALUES ('Envision')") == 0.0
    assert score(charter, "VALUES ('Summit', 1), ('Envision', 1)") == 0.0


def test_spider(tmp_path: Path) -> None:
    found = read(tmp_path, "spider", "dev.json")
    count, by_age, distinct = found.tasks
    assert [error.field for error in found.errors] == ["query"]
    assert score(count, "SELECT 4") == 0.0  # 4 singers here, 2 in the other database of the directory
    assert score(count, "SELECT COUNT(*) FROM stadium") == 0.0
    assert score(by_age, "SELECT age, name, country FROM singer ORDER BY age DESC") == 1.0
    assert score(by_age, "SELECT age, name, country FROM singer ORDER BY age") == 0.0
    assert score(by_age, "SELECT age, name, country, 1 FROM singer ORDER BY age DESC") == 0.0
    assert score(distinct, "SELECT country FROM singer WHERE age > = 21") == 1.0  # DISTINCT is dropped
    assert score(distinct, "SELECT country FROM singer") == 0.0


def test_spider2(tmp_path: Path) -> None:
    found = read(tmp_path, "spider2")
    earned, counted = found.tasks
    assert [(error.line, error.field) for error in found.errors] == [(3, "instance_id"), (4, "instance_id")]
    assert "A product earns the average" in earned.prompt[-1]["content"]
    average = "SELECT AVG(price), 'x' AS more, product FROM sales GROUP BY product ORDER BY 1"
    assert score(earned, average) == 1.0  # 1.6667 is 1.67 within 0.01, NULL is 0, any order, an extra column
    assert score(earned, "SELECT product FROM sales GROUP BY 1") == 0.0
    label = "SELECT 'pear: 1.67' UNION SELECT 'plum: 5' UNION SELECT 'fig: 0'"
    assert score(earned, label) == 1.0  # the second gold
    assert score(earned, "SELECT AVG(price) + 0.02, product FROM sales GROUP BY product") == 0.0
    assert score(counted, "SELECT COUNT(*) FROM sales GROUP BY product ORDER BY product") == 1.0
    assert score(counted, "SELECT COUNT(*) FROM sales GROUP BY product ORDER BY product DESC") == 0.0


def test_a_list_of_candidates_in_one_row_is_no_answer(tmp_path: Path) -> None:
    task = read(tmp_path, "spider2").tasks[1]
    gold = {"sql": "SELECT 'all', COUNT(*) FROM sales", "rule": "spider2", "columns": [1]}
    one = Task(id="one", env="sql-v1", prompt=task.prompt, data=task.data, answer=gold)
    assert score(one, "SELECT 6, 1, 2") == 1.0
    assert score(one, "SELECT " + ", ".join(map(str, range(50)))) == 0.0


def test_rows_of_ones_own_find_their_databases(tmp_path: Path) -> None:
    found = read(tmp_path, "rows", "tasks.jsonl")
    (task,) = found.tasks
    assert shown(task, "describe", table="stock") == "id INTEGER, item TEXT, amount INT"
    assert [(error.line, error.field) for error in found.errors] == [(2, "answer")]


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder = build(tmp_path, "synsql")
    secret = tmp_path / "secret.sqlite"
    (folder / "databases/farm/farm.sqlite").rename(secret)
    (folder / "databases/farm/farm.sqlite").symlink_to(secret)
    found = SqlEnv.read_tasks(folder / "data.json")
    assert not found.tasks
    assert "links are not followed" in found.errors[0].message
    os.rename(folder / "databases/farm", tmp_path / "farm")
    (folder / "databases/farm").symlink_to(tmp_path / "farm")
    assert not SqlEnv.read_tasks(folder / "data.json").tasks


def test_a_file_that_is_no_database_is_a_bad_row(tmp_path: Path) -> None:
    folder = build(tmp_path, "synsql")
    (folder / "databases/farm/farm.sqlite").write_bytes(b"no database at all" * 100)
    found = SqlEnv.read_tasks(folder / "data.json")
    assert not found.tasks
    assert "not a database" in found.errors[0].message


def test_a_hostile_database_costs_its_rows_only(tmp_path: Path) -> None:
    folder = build(tmp_path, "synsql")
    with closing(sqlite3.connect(folder / "databases/farm/farm.sqlite")) as conn:
        conn.executescript(
            "ALTER TABLE fields RENAME TO old; CREATE VIEW fields AS WITH RECURSIVE c(x) AS "
            "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS field_name, 'W' AS crop, x AS area FROM c;"
        )
    import envs.sql.formats.synsql as synsql

    short, synsql.TIME_S = synsql.TIME_S, 0.2
    try:
        found = SqlEnv.read_tasks(folder / "data.json")
    finally:
        synsql.TIME_S = short
    assert not found.tasks
    assert len(found.errors) == 2


def test_user_files_are_never_written(tmp_path: Path) -> None:
    folder = build(tmp_path, "synsql")
    file = folder / "databases/farm/farm.sqlite"
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    task = SqlEnv.read_tasks(folder / "data.json").tasks[0]
    for sql in ("DELETE FROM fields", "PRAGMA journal_mode=WAL", "VACUUM", f"ATTACH '{folder}/x.db' AS x"):
        assert shown(task, "run_sql", sql=sql) == "error: only SELECT statements are allowed"
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert sorted(os.listdir(file.parent)) == ["farm.sqlite"]

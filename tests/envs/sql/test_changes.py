"""Tasks that change data: judged by what the episode's own database holds at the end."""

from __future__ import annotations

import gc
import glob
import tempfile
from dataclasses import replace

import pytest

from envs.checker.subject import play
from envs.checker.survey import survey
from envs.policies import ScriptedPolicy, call
from envs.sql.env import SqlEnv
from envs.sql.tasks import LEVELS, generate
from envs.types import FaultError, Task

TABLE = {
    "name": "items",
    "columns": [["id", "int", None], ["kind", "text", None], ["price", "real", None]],
    "rows": [[1, "a", 2.0], [2, "b", 3.5], [3, "a", None], [3, "a", None]],
}


def task_of(*script: str, **data: object) -> Task:
    return Task(
        id="t",
        env="sql-v1",
        prompt=({"role": "user", "content": "?"},),
        data={"level": 1, "tables": [TABLE], "changes": True, **data},
        answer={"sql": list(script), "rule": "state"},
    )


TASK = task_of("UPDATE items SET price = 9 WHERE kind = 'a'")


def score(*script: object, task: Task = TASK) -> float:
    return play(SqlEnv(), ScriptedPolicy(list(script)), task).score  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        (["UPDATE items SET price = 9 WHERE kind = 'a'"], 1.0),
        (["UPDATE items SET price = 9 WHERE id = 1", "UPDATE items SET price = 9.0 WHERE id = 3"], 1.0),
        (["UPDATE items SET price = 9"], 0.0),
        (["UPDATE items SET price = 9 WHERE id = 1"], 0.0),
        (["UPDATE items SET price = 9 WHERE kind = 'a'", "DELETE FROM items WHERE id = 2"], 0.0),
        (["UPDATE items SET price = 9 WHERE kind = 'a'", "INSERT INTO items VALUES (4, 'c', 1)"], 0.0),
        (["UPDATE items SET price = '9' WHERE kind = 'a'"], 1.0),  # the column's type makes it a number
        (["SELECT 9 AS price"], 0.0),
        ([], 0.0),
    ],
)
def test_the_database_is_judged_and_not_the_statements(statements: list[str], wanted: float) -> None:
    assert score(*(call("run_sql", sql=sql) for sql in statements), call("submit", sql="")) == wanted


def test_the_last_statement_may_come_with_the_submission() -> None:
    assert score(call("submit", sql="UPDATE items SET price = 9 WHERE kind = 'a'")) == 1.0


def test_nothing_is_right_that_was_not_submitted() -> None:
    assert score(call("run_sql", sql="UPDATE items SET price = 9 WHERE kind = 'a'")) == 0.0


def test_rows_count_with_their_duplicates() -> None:
    task = task_of("DELETE FROM items WHERE id = 2")
    assert score(call("submit", sql="DELETE FROM items WHERE kind = 'b'"), task=task) == 1.0
    script = [call("run_sql", sql="DELETE FROM items WHERE id IN (2, 3)")]
    script.append(call("submit", sql="INSERT INTO items VALUES (3, 'a', NULL)"))
    assert score(*script, task=task) == 0.0  # one of two equal rows is missing


REFUSED = [
    "CREATE TABLE t (a)",
    "DROP TABLE items",
    "ALTER TABLE items ADD COLUMN x",
    "CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items; END",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "PRAGMA writable_schema=ON",
    "UPDATE sqlite_master SET sql = ''",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT a",
    "VACUUM INTO '/tmp/x.db'",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_only_rows_can_be_changed(sql: str) -> None:
    env = SqlEnv()
    env.reset(options={"task": TASK})
    assert env.step(call("run_sql", sql=sql)).observation[0]["content"].startswith("error")
    assert env.step(call("run_sql", sql="SELECT COUNT(*) FROM items")).observation[0]["content"].endswith("4")
    env.close()


def test_a_statement_that_fails_or_takes_too_long_changes_nothing() -> None:
    env = SqlEnv()
    env.reset(options={"task": TASK})
    slow = (
        "INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i, 'x', 0 FROM n"
    )
    said = env.step(call("run_sql", sql=slow)).observation[0]["content"]
    assert "took longer than" in said or "full" in said or "memory" in said
    assert env.step(call("run_sql", sql="SELECT COUNT(*) FROM items")).observation[0]["content"].endswith("4")
    env.close()


def test_a_fork_has_a_database_of_its_own() -> None:
    env = SqlEnv()
    env.reset(options={"task": TASK})
    env.step(call("run_sql", sql="DELETE FROM items WHERE id = 2"))
    snapshot = env.snapshot()
    other = env.restore(snapshot)
    other.step(call("run_sql", sql="DELETE FROM items"))

    def count(which: SqlEnv) -> str:
        shown = which.step(call("run_sql", sql="SELECT COUNT(*) FROM items")).observation[0]["content"]
        return str(shown).splitlines()[-1]

    assert (count(env), count(other)) == ("3", "0")  # type: ignore[arg-type]
    again = env.restore(snapshot)
    assert count(again) == "3"  # type: ignore[arg-type]
    for each in (env, other, again):
        each.close()
    snapshot.release()


def test_no_image_is_left_behind() -> None:
    gc.collect()
    before = set(glob.glob(f"{tempfile.gettempdir()}/agent-rl-sql-*"))
    env = SqlEnv()
    env.reset(options={"task": TASK})
    for n in range(3):
        env.step(call("run_sql", sql=f"INSERT INTO items VALUES ({n}, 'z', 0)"))
    assert len(set(glob.glob(f"{tempfile.gettempdir()}/agent-rl-sql-*")) - before) == 1
    env.close()
    gc.collect()
    assert set(glob.glob(f"{tempfile.gettempdir()}/agent-rl-sql-*")) <= before


@pytest.mark.parametrize("level", LEVELS)
def test_generated_changes_pay_gold_and_no_near_miss(level: int) -> None:
    for task in generate("test", 6, 0, level=level, changes=True):
        assert task.data["changes"] is True
        assert play(SqlEnv(), SqlEnv.policies()["gold"].make(task, 0), task).score == 1.0
        misses = [*task.answer["slips"].values(), task.answer["guess"]]
        wrong = [sql for sql in misses if sql != task.answer["sql"]]
        assert len(wrong) >= 3
        assert not any(score(call("submit", sql=sql), task=task) for sql in wrong)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_generated_changes_are_sound_on_every_level(level: int) -> None:
    found = survey("sql-v1", generate("test", 6, 0, level=level, changes=True), sample=None)
    assert {f.finding for f in found.findings} == {"sound"}, found.text()


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (task_of("UPDATE nowhere SET a = 1"), "no such table"),
        (replace(TASK, answer={"sql": "SELECT 1", "rule": "bag"}), "rule 'state'"),
    ],
)
def test_a_gold_that_cannot_judge_is_the_tasks_fault(task: Task, why: str) -> None:
    env = SqlEnv()
    env.reset(options={"task": task})
    with pytest.raises(FaultError, match=why) as caught:
        env.step(call("submit", sql="DELETE FROM items"))
    assert caught.value.fault.kind == "task"

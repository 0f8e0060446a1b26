from __future__ import annotations

import dataclasses
import inspect
import json
import os
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from envs.policies import call, calls, say
from envs.sql.env import SqlEnv
from envs.sql.policies import Sloppy
from envs.sql.tasks import LEVELS
from envs.tasksets import load_jsonl
from envs.types import FaultError, Step, Task
from tests.envs.sql.shops import shops
from tools.types import Message

SPEC = shops().spec
TASK = Task(
    id="shops",
    env="sql-v1",
    prompt=({"role": "user", "content": "count shops where town = 'kavo'"},),
    data={"level": 1, **SPEC},
    answer={"sql": "SELECT COUNT(*) FROM shops WHERE place = 'kavo'"},
)


def play(policy: str, task: Task, seed: int = 0) -> tuple[Step, int, list[Message]]:
    env = SqlEnv()
    messages, _ = env.reset(options={"task": task})
    actor = SqlEnv.policies()[policy].make(task, seed)
    history = list(messages)
    while True:
        action = actor.act(history, env.tools)
        step = env.step(action)
        history += [action, *step.observation]
        if step.terminated or step.truncated:
            env.close()
            return step, env.turns, history


def started(task: Task = TASK) -> SqlEnv:
    env = SqlEnv()
    env.reset(options={"task": task})
    return env


def text(step: Step) -> str:
    return "\n".join(message["content"] for message in step.observation)


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (call("list_tables"), "shops"),
        (call("describe", table="shops"), "id int, place text, cost int"),
        (call("describe", table="Shops "), "id int, place text, cost int"),
        (call("describe", table="shop"), "error: no table 'shop'; did you mean 'shops'? tables: shops"),
        (call("run_sql", sql="SELECT id, cost FROM shops WHERE id > 2"), "id|cost\n3|NULL\n4|7"),
        (call("run_sql", sql="SELECT place FROM shops WHERE id = 4"), "place\na\\|b\\nc"),
        (call("run_sql", sql="SELECT id FROM shops WHERE id > 9"), "id\n(no rows)"),
        (call("run_sql", sql="SELECT x'0aff', 1.0, 'it''s'"), "x'0aff'|1.0|'it''s'\nx'0aff'|1.0|it's"),
        (call("run_sql", sql="SELECT town FROM shops"), "error: no such column: town"),
        (call("run_sql", sql="DROP TABLE shops"), "error: only SELECT statements are allowed"),
        (call("run_sql", sql="SELECT hex(zeroblob(900000000))"), "error: string or blob too big"),
    ],
)
def test_what_tools_show(action: Message, shown: str) -> None:
    assert text(started().step(action)) == shown


def test_rows_left_out_are_counted() -> None:
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 60) SELECT x FROM c"
    lines = text(started().step(call("run_sql", sql=sql))).splitlines()
    assert (lines[0], lines[50], lines[51:]) == ("x", "50", ["(10 more rows)"])


def test_submitting_ends_the_episode_and_is_graded_once() -> None:
    env = started()
    right = "SELECT COUNT(id) FROM shops WHERE place = 'kavo'"
    step = env.step(calls(("submit", {"sql": right}), ("submit", {"sql": "SELECT 1"})))
    assert (step.reward, step.terminated, step.info["stop"]) == (1.0, True, "submitted")
    assert text(step).startswith("submitted\nerror: not run")


def test_text_without_a_call_ends_the_episode_with_nothing() -> None:
    step = started().step(say("It is 2."))
    assert (step.reward, step.info["stop"]) == (0.0, "no_tool_call")


@pytest.mark.parametrize("level", LEVELS)
def test_gold_is_right_on_every_task(level: int) -> None:
    turns = []
    for task in SqlEnv.tasks("test", 40, level=level):
        step, count, _ = play("gold", task)
        assert step.reward == 1.0
        turns.append(count)
    # Level 1 asks about one table, 2 about two, 3 and 4 about three; level 4 also tries the query.
    assert set(turns) == {2 + level}


def test_sloppy_gets_worse_from_level_to_level() -> None:
    # Near misses are known to score 0 (test_tasks), so the last call tells the reward without playing.
    rates = []
    for level in LEVELS:
        right = 0
        for task in SqlEnv.tasks("train", 60, level=level):
            for seed in range(5):
                last = list(Sloppy.play(task, seed))[-1]
                right += last["tool_calls"][0]["function"]["arguments"]["sql"] == task.answer["sql"]
        rates.append(right / 300)
    assert 0.38 <= rates[0] <= 0.54
    assert all(left > right for left, right in pairwise(rates)), rates
    assert rates[-1] > 0.05


def test_sloppy_makes_well_formed_calls_only() -> None:
    for task in SqlEnv.tasks("train", 20, level=0):
        step, turns, history = play("sloppy", task)
        assert turns <= 2
        assert step.info["stop"] == "submitted"
        names = [c["function"]["name"] for m in history for c in m.get("tool_calls", [])]
        assert names in (["submit"], ["describe", "submit"])


ATTACKS = [name for name, spec in SqlEnv.policies().items() if spec.kind == "attack"]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("level", [0, 2])
def test_attacks_score_nothing_and_leave_nothing(attack: str, level: int) -> None:
    if attack == "endless" and level:
        pytest.skip("takes 2 s and is the same at every level")
    (task,) = SqlEnv.tasks("train", 1, seed=7, level=level)
    for policy in (attack, "noop"):
        assert play(policy, task)[0].reward == 0.0
    assert play("gold", task)[0].reward == 1.0
    assert not Path("/tmp/escaped.db").exists()


def test_there_are_at_least_five_attacks_and_one_of_each_other_kind() -> None:
    kinds = [spec.kind for spec in SqlEnv.policies().values()]
    assert len(ATTACKS) >= 5
    assert [kinds.count(kind) for kind in ("gold", "sloppy", "noop")] == [1, 2, 1]


def test_forks_go_their_own_ways() -> None:
    (task,) = SqlEnv.tasks("train", 1)
    env = started(task)
    env.step(call("describe", table=task.answer["look"][0]))
    other = env.fork()
    wrong = env.step(call("submit", sql="SELECT 1"))
    right = other.step(call("submit", sql=task.answer["sql"]))
    assert (wrong.reward, right.reward) == (0.0, 1.0)
    assert other.turns == 2


def test_state_keys_name_what_was_seen() -> None:
    keys = []
    for order in (("shops", "count"), ("count", "shops"), ("shops", "shops"), ("count", "count")):
        env = started()
        steps = [
            env.step(
                call("describe", table="shops") if what == "shops" else call("run_sql", sql="SELECT 7 AS n")
            )
            for what in order
        ]
        keys.append(steps[-1].info["state_key"])
    assert keys[0] == keys[1]
    assert len({keys[0], keys[2], keys[3]}) == 3


def test_interrupt_makes_a_deadline_fault_and_never_a_reward() -> None:
    env = started()
    sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
    timer = threading.Timer(0.2, env.interrupt)
    timer.start()
    with pytest.raises(FaultError) as caught:
        env.step(call("run_sql", sql=sql))
    timer.join()
    env.close()
    assert caught.value.fault.kind == "deadline"
    SqlEnv().interrupt()  # before any reset: nothing to end


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"tables": []},
        {"tables": [{"name": "t", "columns": [["a"]], "rows": []}]},
        {"tables": [{"name": "t", "columns": [["a", "int); DROP TABLE t"]], "rows": []}]},
        {"tables": [{"name": "t", "columns": [["a", "int"]], "rows": [[1, 2]]}]},
        {"tables": [{"name": "t", "columns": [["a", "int", "nowhere"]], "rows": []}]},
    ],
)
def test_a_bad_database_is_a_task_fault(data: dict[str, Any]) -> None:
    with pytest.raises(FaultError) as caught:
        started(dataclasses.replace(TASK, data=data))
    assert caught.value.fault.kind == "task"


@pytest.mark.parametrize("answer", [None, {}, {"sql": "SELECT nope"}, {"sql": "SELECT 1", "rule": "sorted"}])
def test_a_bad_answer_is_a_task_fault(answer: Any) -> None:
    env = started(dataclasses.replace(TASK, answer=answer))
    with pytest.raises(FaultError) as caught:
        env.step(call("submit", sql="SELECT 1"))
    assert caught.value.fault.kind == "task"


def test_a_database_that_sqlite_refuses_is_a_task_fault() -> None:
    table = {"name": "t", "columns": [["a", "int"], ["a", "int"]], "rows": []}
    env = started(dataclasses.replace(TASK, data={"tables": [table]}))
    with pytest.raises(FaultError) as caught:
        env.step(call("run_sql", sql="SELECT 1"))
    assert caught.value.fault.kind == "task"


def test_the_task_of_the_readme_plays(tmp_path: Path) -> None:
    readme = Path(inspect.getfile(SqlEnv)).with_name("README.md").read_text()
    row = json.loads(readme.split("```json")[1].split("```")[0])
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(row))
    loaded = load_jsonl(path, env="sql-v1")
    assert not loaded.errors
    assert play("gold", loaded.tasks[0])[0].reward == 1.0
    env = started(loaded.tasks[0])
    assert env.step(call("submit", sql="SELECT 1")).reward == 0.0


def test_unknown_options_are_named() -> None:
    with pytest.raises(ValueError, match="'lvl'"):
        SqlEnv.tasks("train", 1, lvl=2)


def test_episodes_leave_no_process_and_no_descriptor() -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to list descriptors")
    (task,) = SqlEnv.tasks("train", 1)
    play("gold", task)
    before = (len(os.listdir("/proc/self/fd")), threading.active_count())
    env = SqlEnv()
    for _ in range(200):
        env.reset(options={"task": task})
    for _ in range(20):
        play("gold", task)
    env.close()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before

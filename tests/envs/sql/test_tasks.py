from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from random import Random
from typing import Any

import pytest

from envs.sql.answers import read_answer
from envs.sql.comparison import equal_results
from envs.sql.engine.databases import create_tables
from envs.sql.grading import grade
from envs.sql.hard_templates import TEMPLATES
from envs.sql.queries import World
from envs.sql.schemas import DOMAINS, SYNONYMS
from envs.sql.tasks import LEVELS, generate, literal
from envs.sql.worlds import split_of_word
from envs.types import Split, Task

N = 30
BY_LEVEL = {level: generate("train", N, level=level) for level in LEVELS}
EVERY = [task for tasks in BY_LEVEL.values() for task in tasks]


def worlds(task: Task) -> list[World]:
    return [World({"tables": task.data["tables"]}), *map(World, task.answer["siblings"])]


def run(spec: dict[str, Any], sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        create_tables(conn, spec)
        return conn.execute(sql).fetchall()


def test_tasks_are_a_pure_function_and_a_longer_list_begins_with_the_shorter() -> None:
    for level in LEVELS:
        again = generate("train", 5, level=level)
        assert again == BY_LEVEL[level][:5]
    assert generate("train", 5, seed=1) != generate("train", 5, seed=0)


def test_splits_share_no_database_no_prompt_and_no_word() -> None:
    splits: tuple[Split, ...] = ("train", "validation", "test")
    for level in LEVELS:
        keys: set[str] = set()
        prompts: set[str] = set()
        ids: set[str] = set()
        for split in splits:
            for seed in (0, 1):
                tasks = generate(split, 8, seed, level=level)
                ids |= {task.id for task in tasks}
                prompts |= {task.prompt[-1]["content"] for task in tasks}
                keys |= {world.key for task in tasks for world in worlds(task)}
                for task in tasks:
                    assert task.split == split
                    words = {
                        v for t in task.data["tables"] for row in t["rows"] for v in row if isinstance(v, str)
                    }
                    assert {split_of_word(w) for w in words if not w[0].isdigit()} == {split}
        assert len(ids) == len(prompts) == 48
        assert len(keys) == 48 * 3


def test_tasks_are_json_and_keep_the_answer_out_of_sight() -> None:
    for task in EVERY:
        assert json.loads(json.dumps([task.data, task.answer, task.metadata])) == [
            task.data,
            task.answer,
            task.metadata,
        ]
        assert task.answer["sql"] not in repr(task)
        assert task.answer["sql"] not in json.dumps([task.data, task.metadata, task.prompt])


@pytest.mark.parametrize("level", LEVELS)
def test_gold_scores_one_and_near_misses_score_zero(level: int) -> None:
    for task in BY_LEVEL[level]:
        answer, databases = read_answer(task.answer), worlds(task)
        assert grade(answer.sql, answer, databases).scalar == 1.0
        rows = run({"tables": task.data["tables"]}, answer.sql)
        misses = [*task.answer["slips"].values(), literal(rows)]
        assert len(misses) >= 3
        for sql in misses:
            assert grade(sql, answer, databases).scalar == 0.0, (task.prompt, sql)


@pytest.mark.parametrize("level", LEVELS)
def test_gold_does_not_depend_on_the_order_of_rows(level: int) -> None:
    rng = Random(0)
    for task in BY_LEVEL[level]:
        tables = [{**t, "rows": rng.sample(t["rows"], len(t["rows"]))} for t in task.data["tables"]]
        before = run({"tables": task.data["tables"]}, task.answer["sql"])
        assert equal_results(before, run({"tables": tables}, task.answer["sql"]), task.answer["rule"])


def test_siblings_have_the_same_schema_and_other_results() -> None:
    for task in EVERY:
        specs = [dict(task.data), *task.answer["siblings"]]
        schemas = [[(t["name"], t["columns"]) for t in spec["tables"]] for spec in specs]
        assert schemas[0] == schemas[1] == schemas[2]
        results = [run(spec, task.answer["sql"]) for spec in specs]
        assert all(results)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert not equal_results(results[i], results[j], task.answer["rule"])


def test_the_question_does_not_name_the_columns() -> None:
    # Each concept has three column names, so a guess from the words is right at one column in three.
    level_0 = generate("train", 200, level=0)
    lucky = sum(task.answer["guess"] == task.answer["sql"] for task in level_0)
    assert 0.08 < lucky / 200 < 0.30
    assert sum(task.answer["guess"] == task.answer["sql"] for task in BY_LEVEL[3] + BY_LEVEL[4]) <= 4


def test_level_0_fits_a_tiny_model() -> None:
    for task in BY_LEVEL[0]:
        assert [m["role"] for m in task.prompt] == ["user"]
        (table,) = task.data["tables"]
        assert (len(table["rows"]), len(table["columns"])) == (8, 4)
        assert all(3 <= len(v) <= 5 for row in table["rows"] for v in row if isinstance(v, str))
        # question, `describe(table="...")`, the columns, `submit(sql="...")`: words, marks and letters of the value
        gold = f'{task.prompt[0]["content"]} describe(table="t") submit(sql="{task.answer["sql"]}")'
        shown = " , ".join(f"{name} {kind}" for name, kind, _ in table["columns"])
        assert len(re.findall(r"\w+|[^\w\s]", f"{gold} {shown}")) + 2 * 5 <= 70
        assert len(task.prompt[0]["content"].split()) <= 8


def test_worlds_hold_nulls_duplicate_rows_dates_and_many_schemas() -> None:
    rows = [row for task in BY_LEVEL[2] for table in task.data["tables"] for row in table["rows"]]
    assert any(value is None for row in rows for value in row)
    assert any(re.fullmatch(r"20\d\d-\d\d-\d\d", str(value)) for row in rows for value in row)
    events = BY_LEVEL[2][0].data["tables"][2]["rows"]
    assert len({tuple(row) for row in events}) < len(events)
    assert len(DOMAINS) >= 6
    used = {task.answer["look"][0] for task in BY_LEVEL[0]}
    assert len(used) > 10


def test_every_template_is_used_and_some_are_ordered() -> None:
    for level in LEVELS:
        tasks = generate("train", 60, seed=3, level=level) + BY_LEVEL[level]
        assert {task.metadata["template"] for task in tasks} == {
            template.name for template in TEMPLATES[level]
        }
    assert {task.answer["rule"] for task in EVERY} == {"bag", "ordered"}


def test_no_column_name_belongs_to_two_concepts() -> None:
    names = [name for synonyms in SYNONYMS.values() for name in synonyms]
    assert len(names) == len(set(names))
    assert all(concept == synonyms[0] for concept, synonyms in SYNONYMS.items())


def test_guidance_comes_with_level_1_or_on_request() -> None:
    assert [m["role"] for m in BY_LEVEL[1][0].prompt] == ["system", "user"]
    assert [m["role"] for m in generate("train", 1, level=0, verbose=True)[0].prompt] == ["system", "user"]
    assert [m["role"] for m in generate("train", 1, level=2, verbose=False)[0].prompt] == ["user"]


@pytest.mark.parametrize("wrong", [{"level": 5}, {"level": "hard"}, {"n": -1}, {"split": "dev"}])
def test_wrong_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(next(iter(wrong.values()))))):
        generate(**wrong)

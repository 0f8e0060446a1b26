"""Generates tasks: databases, questions, gold SQL, siblings and near misses, as a pure function of the arguments.

A draft becomes a task only if (a) its gold gives a result that is not trivial on the database and on every sibling,
and a different one on each, and (b) every near-miss answer of its template, a literal copy of the result and the
guess from the question's words among them, scores 0.

    data    {"level", "tables": [{"name", "columns": [[name, type, references | null]], "rows"}]}
    answer  {"sql", "rule", "siblings": [{"tables": ...}, ...], "look": [tables], "slips": {kind: sql}, "guess"}
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from random import Random
from typing import Any

from envs.sql.comparison import equal_results
from envs.sql.drafting import draft_change, literal, open_trusted, spelled
from envs.sql.hard_templates import TEMPLATES
from envs.sql.queries import Row
from envs.sql.questions import Question, ask
from envs.sql.schemas import DOMAINS
from envs.sql.worlds import Blueprint, draw_blueprint, fill
from envs.tasksets import task_id
from envs.types import Split, Task
from tools.types import Message

ENV_ID = "sql-v1"
LEVELS = tuple(TEMPLATES)
SIBLINGS = 2
MAX_GOLD_ROWS = 30
SYSTEM = (
    "Answer a question about a SQLite database with one SELECT statement. Table and column names differ from the "
    "words of the question: look at the tables with list_tables and describe, try queries with run_sql, then call "
    "submit once. Your query must give exactly the columns asked for, in the order asked, and must answer the "
    "question on any database with the same tables."
)

SYSTEM_OF_CHANGES = (
    "Change a SQLite database as you are asked to. Table and column names differ from the words of the question: look "
    "at the tables with list_tables and describe. run_sql runs one SELECT, INSERT, UPDATE or DELETE statement on your "
    "own copy of the database; submit runs a last one, or none if its text is empty, and ends. What the database then "
    "holds is judged: change what was asked for and nothing else."
)


def generate(
    split: Split = "train",
    n: int = 1,
    seed: int = 0,
    *,
    level: int = 0,
    verbose: bool | None = None,
    changes: bool = False,
) -> list[Task]:
    """`n` tasks of a split and a level (0 to 4); a longer list begins with the shorter one.

    With `changes` the tasks are to change the database, else to answer a question about it.

    `verbose` puts guidance into a system message: by default from level 1 on. No database and no prompt of one
    split occurs in another, because random words belong to one split each.

    Raises:
        ValueError: an unknown split or level, or a negative `n`.
    """
    if level not in TEMPLATES:
        raise ValueError(f"a level is one of {', '.join(map(str, LEVELS))}, got {level!r}")
    if split not in ("train", "validation", "test"):
        raise ValueError(f"a split is train, validation or test, got {split!r}")
    if n < 0:
        raise ValueError(f"the number of tasks is not negative, got {n}")
    tasks: list[Task] = []
    prompts: set[str] = set()
    number = 0
    while len(tasks) < n:
        shown = verbose if verbose is not None else changes or level > 0
        task = _generate_one(split, seed, level, number, shown, changes)
        number += 1
        if task.prompt[-1]["content"] not in prompts:
            prompts.add(task.prompt[-1]["content"])
            tasks.append(task)
    return tasks


def _generate_one(split: Split, seed: int, level: int, number: int, verbose: bool, changes: bool) -> Task:
    rng = Random(f"{ENV_ID}/{split}/{seed}/{level}/{number}{'/changes' if changes else ''}")
    while True:
        draft = draft_change(rng, split, level) if changes else _draft(rng, split, level)
        if draft is not None:
            question, spec, siblings = draft
            return _task(
                question, spec, siblings, split=split, level=level, verbose=verbose, seed=rng.getrandbits(31)
            )


def _task(
    question: Question,
    spec: dict[str, Any],
    siblings: list[dict[str, Any]],
    *,
    split: Split,
    level: int,
    verbose: bool,
    seed: int,
) -> Task:
    user: Message = {"role": "user", "content": question.text}
    changes = question.rule == "state"
    system: Message = {"role": "system", "content": SYSTEM_OF_CHANGES if changes else SYSTEM}
    prompt = (system, user) if verbose else (user,)
    data = {"level": level, **spec, **({"changes": True} if changes else {})}
    answer = {
        "sql": question.sql,
        "rule": question.rule,
        "siblings": siblings,
        "look": list(question.tables),
        "slips": question.slips,
        "guess": question.guess,
    }
    return Task(
        id=task_id(ENV_ID, prompt, data, answer),
        env=ENV_ID,
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        seed=seed,
        metadata={"level": level, "template": question.template},
    )


def _draft(
    rng: Random, split: Split, level: int
) -> tuple[Question, dict[str, Any], list[dict[str, Any]]] | None:
    blueprint = draw_blueprint(rng, rng.choice(DOMAINS), level, split)
    spec = fill(rng, blueprint)
    template = rng.choice(TEMPLATES[level])
    with ExitStack() as stack:
        own = stack.enter_context(closing(open_trusted(spec)))
        for _ in range(4):
            question = ask(rng, template, blueprint, spec)
            if question is None or (gold := _worthy(own, question)) is None:
                continue
            siblings = _find_siblings(rng, stack, blueprint, question, gold)
            if siblings is None:
                continue
            databases = [own, *(database for _, database in siblings)]
            if _slips_fail(question, gold, databases):
                return question, spec, [sibling for sibling, _ in siblings]
    return None


def _find_siblings(
    rng: Random, stack: ExitStack, blueprint: Blueprint, question: Question, gold: list[Row]
) -> list[tuple[dict[str, Any], sqlite3.Connection]] | None:
    """Fill worlds until enough of them give worthy results, no two alike."""
    found: list[tuple[dict[str, Any], sqlite3.Connection]] = []
    results = [gold]
    for _ in range(6):
        spec = fill(rng, blueprint)
        database = stack.enter_context(closing(open_trusted(spec)))
        rows = _worthy(database, question)
        if rows is None or any(equal_results(rows, other, question.rule) for other in results):
            continue
        found.append((spec, database))
        results.append(rows)
        if len(found) == SIBLINGS:
            return found
    return None


def _run(database: sqlite3.Connection, sql: str) -> list[Row]:
    return database.execute(sql).fetchall()


def _worthy(database: sqlite3.Connection, question: Question) -> list[Row] | None:
    """The gold result, unless it is empty, too long, or says no more than zero or NULL."""
    rows = _run(database, question.sql)
    if not rows or len(rows) > MAX_GOLD_ROWS or all(value in (0, None) for row in rows for value in row):
        return None
    return rows


def _slips_fail(question: Question, gold: list[Row], databases: Sequence[sqlite3.Connection]) -> bool:
    slips = [*question.slips.values(), literal(gold)]
    if question.guess != question.sql:
        slips.append(question.guess)
    return not any(_is_right(slip, question, databases) for slip in slips)


def _is_right(sql: str, question: Question, databases: Sequence[sqlite3.Connection]) -> bool:
    try:
        return all(equal_results(_run(d, sql), _run(d, question.sql), question.rule) for d in databases)
    except sqlite3.Error:
        return False


__all__ = ["ENV_ID", "LEVELS", "generate", "literal", "spelled"]

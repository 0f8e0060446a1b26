"""Answers that nobody should be paid for, tried on a user's own tasks: constants and what is frequent among golds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from envs.errors import TaskError
from envs.policies import CANDIDATES, PolicySpec, call, trivial
from envs.sql.answers import Answer, read_answer
from envs.sql.grading import check_gold
from envs.sql.queries import Value
from envs.sql.tasks import spelled
from envs.sql.worldspec import read_time, read_world
from envs.types import Task


def trivial_policies(tasks: Sequence[Task]) -> dict[str, PolicySpec]:
    """Policies for these tasks: texts, literal results, the most frequent gold, and lists of candidates."""
    golds: list[str] = []
    values: Counter[Value] = Counter()
    for task in tasks:
        try:
            answer = read_answer(task.answer, read_time(task.data))
            golds.append(answer.sql)
            values.update(_single_values(task, answer))
        except TaskError:  # a broken task is told by the survey
            continue
    frequent = [value for value, _ in values.most_common(CANDIDATES)]
    also = {
        "select_42": "SELECT 42",
        "select_0": "SELECT 0",
        "select_null": "SELECT NULL",
        "no_row": "SELECT 1 WHERE 0",
    }
    if frequent and values[frequent[0]] > 1:
        also["frequent_value"] = f"SELECT {spelled(frequent[0])}"
    if len(frequent) > 1:
        also["candidate_rows"] = " UNION ALL ".join(f"SELECT {spelled(value)}" for value in frequent)
        also["candidate_columns"] = "SELECT " + ", ".join(map(spelled, frequent))
    return trivial(lambda text: call("submit", sql=text), golds, also=also)


def _single_values(task: Task, answer: Answer) -> Iterable[Value]:
    """The value of a gold result that is one."""
    if answer.rule == "state":
        return []
    if answer.results:
        results: list[Sequence[Sequence[Value]]] = [gold.rows for gold in answer.results]
    else:
        results = [check_gold(answer, [read_world(task.data)])[0]]
    return [rows[0][0] for rows in results if len(rows) == 1 and len(rows[0]) == 1]

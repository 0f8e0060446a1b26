"""Reads what the grader of a task needs out of its `answer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from envs.errors import TaskError
from envs.sql.queries import QUERY_TIME_S, Rule, World
from envs.sql.tolerance import Gold
from envs.sql.worldspec import changes_data, read_world


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a task is graded. `script` holds the statements of a gold that changes data; `sql` is its first."""

    sql: str
    rule: Rule = "bag"
    script: tuple[str, ...] = ()
    siblings: tuple[World, ...] = ()
    """Databases beside the task's own on which a submission must be right as well."""
    keep_distinct: bool = False
    """Of `spider`: whether DISTINCT counts; the rule drops it from both queries by default."""
    ignore_order: bool = False
    """Of `spider2`."""
    results: tuple[Gold, ...] = ()
    """Of `spider2`: stored gold results, one of which must match; without them the gold SQL is run."""
    columns: tuple[int, ...] = ()
    """Of `spider2` without stored results: which columns of the gold result count."""
    time_s: float = QUERY_TIME_S


def read_answer(answer: Any, time_s: float = QUERY_TIME_S) -> Answer:
    """Return the parts of a task's answer.

    Raises:
        TaskError: the answer is not complete.
    """
    if not isinstance(answer, Mapping):
        raise TaskError("the answer of a sql-v1 task is an object with the gold query under 'sql'")
    rule = answer.get("rule", "bag")
    if rule not in get_args(Rule):
        raise TaskError(f"the rule of a sql-v1 task is one of {', '.join(get_args(Rule))}, got {rule!r:.80}")
    results = tuple(_read_result(result) for result in _list(answer, "results"))
    script = _script(answer.get("sql", ""))
    if rule == "state" and results:
        raise TaskError("a task that changes data has no stored results: put its statements under 'sql'")
    if not script and not results:
        raise TaskError("the answer of a sql-v1 task is an object with the gold query under 'sql'")
    siblings = tuple(read_world(spec) for spec in _list(answer, "siblings") if isinstance(spec, Mapping))
    return Answer(
        sql=script[0] if script else "",
        rule=rule,
        script=script if rule == "state" else (),
        siblings=siblings,
        keep_distinct=bool(answer.get("keep_distinct", False)),
        ignore_order=bool(answer.get("ignore_order", False)),
        results=results,
        columns=_columns(answer.get("columns", [])),
        time_s=time_s,
    )


def check_rule(data: Mapping[str, Any], answer: Answer) -> None:
    """Check that a task that changes data is graded on its database, and no other task is.

    Raises:
        TaskError: it is not so.
    """
    if changes_data(data) != (answer.rule == "state"):
        raise TaskError(
            f"a task whose data has 'changes' is graded by the rule 'state', and no other: the rule is {answer.rule!r}"
        )


def _list(answer: Mapping[str, Any], key: str) -> list[Any]:
    value = answer.get(key, [])
    if not isinstance(value, list | tuple):
        raise TaskError(f"{key!r} of an answer is a list, got {type(value).__name__}")
    return list(value)


def _script(sql: Any) -> tuple[str, ...]:
    if isinstance(sql, str):
        return (sql,) if sql.strip() else ()
    if isinstance(sql, list) and sql and all(isinstance(each, str) and each.strip() for each in sql):
        return tuple(sql)
    raise TaskError("the gold of a sql-v1 task is text, or a list of statements, under 'sql'")


def _read_result(result: Any) -> Gold:
    rows = result.get("rows") if isinstance(result, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise TaskError("a stored gold result has a list of rows under 'rows'")
    if len({len(row) for row in rows}) > 1:
        raise TaskError("all rows of a stored gold result have the same length")
    columns = _columns(result.get("columns", []))
    width = len(rows[0]) if rows else 0
    if rows and any(not 0 <= column < width for column in columns):
        raise TaskError(f"the columns of a stored gold result are below {width}, got {list(columns)}")
    return Gold(rows=tuple(map(tuple, rows)), columns=columns)


def _columns(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(type(column) is int for column in value):
        raise TaskError(f"columns are a list of numbers from 0, got {value!r:.80}")
    return tuple(value)

"""A hand-made database and what is asked of it."""

from __future__ import annotations

from typing import Any

from envs.sql.queries import Failed, Query, Rows, World

COLUMNS: list[list[Any]] = [["id", "int", None], ["place", "text", None], ["cost", "int", None]]
ROWS: list[list[Any]] = [[1, "kavo", 5], [2, "kavo", 5], [3, "mul", None], [4, "a|b\nc", 7]]


def shops(rows: list[list[Any]] | None = None) -> World:
    return World({"tables": [{"name": "shops", "columns": COLUMNS, "rows": ROWS if rows is None else rows}]})


def query(sql: str, **options: Any) -> Query:
    return Query(world=shops(), sql=sql, **options)


def rows_of(result: Rows | Failed) -> tuple[tuple[Any, ...], ...]:
    assert isinstance(result, Rows), result
    return result.rows


def failure_of(result: Rows | Failed) -> Failed:
    assert isinstance(result, Failed), result
    return result

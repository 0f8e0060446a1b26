"""A query on a database, and what comes of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

QUERY_TIME_S = 2.0

Value = int | float | str | bytes | None
Row = tuple[Value, ...]
Rule = Literal["bag", "ordered", "set", "spider", "spider2", "state"]
"""How two results are compared: see `envs.sql.comparison`."""
Kind = Literal["query", "schema", "change", "state"]
ErrorKind = Literal["sql", "time", "memory"]


@dataclass(frozen=True)
class World:
    """A database as JSON.

    `{"tables": [{"name", "columns": [[name, type, references | null]], "rows"}]}`, a user's file
    `{"folder", "file"}`, or one that a task changes, `{"base": world, "changes": path of its image | null}`.
    """

    spec: Mapping[str, Any]

    @cached_property
    def key(self) -> str:
        """Hash of the content, 16 hex digits."""
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query on one world. `fresh` runs it on a copy of the world that no other query has seen."""

    world: World
    sql: str
    fresh: bool = False
    max_rows: int = 1000
    max_count: int = 0
    """How many rows beyond `max_rows` are counted."""
    max_cell: int = 0
    """Characters kept of a text; 0 keeps all."""
    time_s: float = QUERY_TIME_S
    kind: Kind = "query"
    """`schema` reads tables and columns; `change` saves what a statement leaves; `state` digests the database."""
    save: str = ""
    """Of a change: the path of the image that it makes."""
    script: tuple[str, ...] = ()
    """Of a state: the statements before it."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gave: column names as they stand, rows in order, duplicates kept."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int = 0
    changed: int | None = None
    """Of a statement without rows: how many it changed."""
    found: Any = None
    """Of a schema or a state: the tables."""
    saved: bool = False
    """Of a change: whether it made an image."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A query that gave no rows: the model's mistake (sql) or a limit that it hit (time, memory)."""

    kind: ErrorKind
    message: str

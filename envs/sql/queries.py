"""A query on a generated database, and what comes of it."""

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
Rule = Literal["bag", "ordered"]
"""How two results are compared: as multisets of rows, or in order."""
ErrorKind = Literal["sql", "time", "memory"]


@dataclass(frozen=True)
class World:
    """A database as JSON: `{"tables": [{"name", "columns": [[name, type, references | null]], "rows"}]}`."""

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


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gave: column names as they stand, rows in order, duplicates kept."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """A query that gave no rows: the model's mistake (sql) or a limit that it hit (time, memory)."""

    kind: ErrorKind
    message: str

"""What a task is made of: the goal as changes to the server's rows, and how a browser brings them about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any, Literal

from sqlalchemy import MetaData

from envs.types import Split
from envs.web.sites.words import Words
from envs.web.world import Row, Rows

Step = tuple[str, ...]
"""`(tool, role, name, ...)`: what a person does, by the names on the page: `("fill", "textbox", "Search", "lamp")`."""

LEVELS = (0, 1, 2, 3)
GOLD = "gold"


@dataclass(frozen=True, slots=True)
class Change:
    """One row that is added, changed (by `id`) or deleted (by its other columns)."""

    kind: Literal["add", "set", "delete"]
    table: str
    values: Row
    id: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to play: the steps, and the changes that they leave behind."""

    steps: tuple[Step, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A goal in words, the right way to it, and near misses by name."""

    text: str
    gold: Way
    misses: Mapping[str, Way]
    start: str = "/"
    user: int = 0
    """Id of the user who is logged in from the start; 0: nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a plan is drawn from."""

    rng: Random
    words: Words
    rows: Rows
    level: int

    def some(self, table: str, **where: Any) -> list[Row]:
        """The rows of a table with these values."""
        return [row for row in self.rows[table] if all(row[key] == value for key, value in where.items())]


PlanMaker = Callable[[Draw], Plan | None]
"""Draws a plan; None when this world has no good one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteSpec:
    """A site: its tables, how a world is filled, its application, and its tasks by level."""

    name: str
    metadata: MetaData
    fill: Callable[[Random, Words, int], Rows]
    app: Callable[[], Any]
    plans: Mapping[int, Sequence[PlanMaker]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the site is found: a name that no resolver knows."""
        return f"http://{self.name}.test"


@dataclass(frozen=True, slots=True)
class Start:
    """A world before anybody touched it. It is shared: nobody may change the rows."""

    rows: Rows
    names: frozenset[str]
    """Made-up names that occur in it."""


@lru_cache(maxsize=128)
def start_of(spec: SiteSpec, seed: int, level: int, split: Split) -> Start:
    """The world of a seed."""
    rng = Random(f"web-v1/{spec.name}/{seed}/{level}")
    words = Words(rng, split)
    return Start(rows=spec.fill(rng, words, level), names=frozenset(words.used))


def log_in(user: Row) -> tuple[Step, ...]:
    """How a person logs in."""
    return (
        ("click", "link", "Log in"),
        ("fill", "textbox", "Name", user["name"]),
        ("fill", "textbox", "Password", user["password"]),
        ("click", "button", "Enter"),
    )


def credentials(user: Row) -> str:
    """Name and password in a sentence."""
    return f"Your name is {user['name']}, your password is {user['password']}."


def users(rng: Random, words: Words, n: int) -> list[Row]:
    """People with made-up names and passwords."""
    return [
        {"id": i, "name": words.name(), "password": f"{words.word()}{rng.randrange(10, 100)}"}
        for i in range(1, n + 1)
    ]

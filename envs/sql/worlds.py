"""From a random generator to databases: words of a split, names of a schema, rows of worlds and siblings.

A *blueprint* fixes what a question may rely on: the schema with its column names and the pools of values. From one
blueprint any number of worlds can be filled; they share schema and pools and differ in their rows. The first is
the task's database, the others are the siblings that a submission must also answer correctly.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from envs.sql.schemas import SYNONYMS, Dimension, Domain, Event
from envs.types import Split

_CONSONANTS = "bdfgklmnprstvz"
_VOWELS = "aeiou"
_SHAPES = ("cvc", "cvcv", "cvcvc")
_LONG_SHAPES = ("cvcvc", "cvcvcv", "cvccvc")
_NAME_SHAPES = ("cvcvcvc", "cvcvcvcv")

SIZES = {0: (8, 8, 0), 1: (10, 10, 24), 2: (12, 10, 32), 3: (12, 10, 48), 4: (14, 10, 60)}
"""Rows of A, B and F by level."""


def split_of_word(word: str) -> Split:
    """Which split a random word belongs to: no value of a test database occurs in a training one."""
    bucket = zlib.crc32(word.encode()) % 10
    if bucket < 7:
        return "train"
    return "validation" if bucket == 7 else "test"


def words(rng: Random, split: Split, count: int, shapes: Sequence[str] = _SHAPES) -> list[str]:
    """Draw `count` different pronounceable words of a split."""
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(rng.choice(_CONSONANTS if kind == "c" else _VOWELS) for kind in rng.choice(shapes))
        if split_of_word(word) == split and word not in SYNONYMS:
            found[word] = None
    return list(found)


class Table:
    """Names of one table: `str()` is the table's name, attributes are its columns by role."""

    def __init__(self, table: str, columns: dict[str, str]) -> None:
        self._table = table
        self.columns = columns

    def __str__(self) -> str:
        return self._table

    def __getattr__(self, role: str) -> str:
        try:
            return self.columns[role]
        except KeyError:
            raise AttributeError(f"table {self._table} has no role {role!r}") from None


Names = dict[str, Table]
"""By role of the table: A, B, F."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A schema with its column names and pools of values, from which worlds are filled."""

    domain: Domain
    level: int
    database: str
    """A random word by which questions of level 1 and up name the database."""
    names: Names
    """As stored."""
    concepts: Names
    """As spoken of in questions: what somebody would guess who never looked at the database."""
    pools: dict[str, list[str]]
    """Values by role: A.name, A.cat, A.cat2, B.name, ..., F.flag."""
    orders: dict[str, list[str]]
    """The roles of each table's columns, in the order of the database."""


def draw_blueprint(rng: Random, domain: Domain, level: int, split: Split) -> Blueprint:
    """Draw names and pools for a database of `domain`."""
    roles = {role: _roles(role, level) for role in (("A", "B") if level == 0 else ("A", "B", "F"))}
    if level == 0:
        keep = rng.choice(("A", "B"))
        roles = {keep: roles[keep]}
    orders = {role: ["id", *rng.sample(rest, len(rest))] for role, rest in roles.items()}
    if "F" in orders:
        orders["F"].remove("id")  # events have no key: two equal rows are two events
    pools = {
        f"{table}.{role}": words(
            rng, split, _pool_size(table, role, level), _SHAPES if level == 0 else _LONG_SHAPES
        )
        for table, order in orders.items()
        for role in order
        if role in ("name", "cat", "cat2", "flag")
    }
    return Blueprint(
        domain=domain,
        level=level,
        database=words(rng, split, 1, _NAME_SHAPES)[0],
        names={role: _draw_names(rng, domain, role, order) for role, order in orders.items()},
        concepts={role: _spoken_names(domain, role, order) for role, order in orders.items()},
        pools=pools,
        orders=orders,
    )


def _roles(table: str, level: int) -> list[str]:
    if level == 0:
        return ["cat", "cat2", "num"]
    return ["a", "b", "num", "date", "flag"] if table == "F" else ["name", "cat", "cat2", "num", "date"]


def _pool_size(table: str, role: str, level: int) -> int:
    if role == "name":
        return SIZES[level][0 if table == "A" else 1]
    return 4 if role == "cat" else 3


def part(domain: Domain, table: str) -> Dimension | Event:
    """The domain's table behind a role."""
    parts: dict[str, Dimension | Event] = {"A": domain.a, "B": domain.b, "F": domain.f}
    return parts[table]


def _concept(domain: Domain, table: str, role: str) -> str:
    if role in ("id", "name"):
        return role
    if role in ("a", "b"):
        return (domain.a if role == "a" else domain.b).one
    return str(getattr(part(domain, table), role))


def _draw_names(rng: Random, domain: Domain, table: str, order: list[str]) -> Table:
    columns = {}
    for role in order:
        concept = _concept(domain, table, role)
        columns[role] = rng.choice(_synonyms(concept, role))
    return Table(rng.choice(part(domain, table).tables), columns)


def _synonyms(concept: str, role: str) -> tuple[str, ...]:
    if role == "id":
        return ("id",)
    if role in ("a", "b"):
        return (f"{concept}_id", concept, f"{concept}_ref")
    return SYNONYMS[concept]


def _spoken_names(domain: Domain, table: str, order: list[str]) -> Table:
    return Table(part(domain, table).noun, {role: _concept(domain, table, role) for role in order})


def fill(rng: Random, blueprint: Blueprint) -> dict[str, Any]:
    """Fill a world: the spec that a worker builds the database from."""
    sizes = dict(zip("ABF", SIZES[blueprint.level], strict=True))
    tables = []
    for role in blueprint.orders:
        rows = (
            _event_rows(rng, blueprint, sizes)
            if role == "F"
            else _dimension_rows(rng, blueprint, role, sizes[role])
        )
        tables.append(
            {
                "name": str(blueprint.names[role]),
                "columns": _columns(blueprint, role),
                "rows": [[row[r] for r in blueprint.orders[role]] for row in rows],
            }
        )
    return {"tables": tables}


def _columns(blueprint: Blueprint, table: str) -> list[list[Any]]:
    names = blueprint.names[table]
    columns: list[list[Any]] = []
    for role in blueprint.orders[table]:
        kind = "int" if role in ("id", "num", "a", "b") else "text"
        target = f"{blueprint.names[role.upper()]}.id" if role in ("a", "b") else None
        columns.append([names.columns[role], kind, target])
    return columns


def _dimension_rows(rng: Random, blueprint: Blueprint, table: str, count: int) -> list[dict[str, Any]]:
    pools = blueprint.pools
    rows: list[dict[str, Any]] = []
    numbers = rng.sample(range(10, 100), count)
    dates = rng.sample(range(1, 1500), count)
    names = rng.sample(pools.get(f"{table}.name", [""] * count), count)
    for i in range(count):
        row: dict[str, Any] = {"id": i + 1, "num": numbers[i]}
        row["cat"], row["cat2"] = rng.choice(pools[f"{table}.cat"]), rng.choice(pools[f"{table}.cat2"])
        if blueprint.level > 0:
            row["name"], row["date"] = names[i], _date(dates[i])
            if rng.random() < 0.15:
                row["num"] = None
        rows.append(row)
    return rows


def _event_rows(rng: Random, blueprint: Blueprint, sizes: dict[str, int]) -> list[dict[str, Any]]:
    # Some things have no event at all, which outer joins and anti-joins turn on.
    a_ids = rng.sample(range(1, sizes["A"] + 1), sizes["A"] - 2)
    b_ids = rng.sample(range(1, sizes["B"] + 1), sizes["B"] - 1)
    rows: list[dict[str, Any]] = []
    while len(rows) < sizes["F"]:
        if rows and rng.random() < 0.12:
            rows.append(dict(rng.choice(rows)))  # a true duplicate
            continue
        rows.append(
            {
                "a": rng.choice(a_ids),
                "b": rng.choice(b_ids),
                "num": None if rng.random() < 0.15 else rng.randint(1, 60),
                "date": _date(rng.randrange(1500, 1860)),
                "flag": None if rng.random() < 0.15 else rng.choice(blueprint.pools["F.flag"]),
            }
        )
    rng.shuffle(rows)
    return rows


def _date(day: int) -> str:
    """Day number to ISO date in months of 28 days, 2019 on: every date is valid, and none needs a calendar."""
    year, rest = divmod(day, 336)
    return f"{2019 + year}-{rest // 28 + 1:02d}-{rest % 28 + 1:02d}"

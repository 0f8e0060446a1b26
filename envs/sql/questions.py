"""Turns a template and a world into a question with its gold SQL and near-miss answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

from envs.sql.queries import Rule
from envs.sql.schemas import Dimension
from envs.sql.templates import Template, expand
from envs.sql.worlds import Blueprint, Names, Table, part

_SWAPPED = {"cat": "cat2", "cat2": "cat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question about one world. `slips` are near misses by kind; `tables` what one has to look at."""

    template: str
    text: str
    sql: str
    rule: Rule
    slips: dict[str, str]
    guess: str
    """The gold SQL as somebody would write it who takes the question's words for column names."""
    tables: tuple[str, ...]


def ask(rng: Random, template: Template, blueprint: Blueprint, world: dict[str, Any]) -> Question | None:
    """Fill in a template, or return None when the world lacks a value that it needs."""
    swap = {table for table in blueprint.names if table != "F" and rng.random() < 0.5}
    x = rng.choice([table for table in blueprint.names if table != "F"])
    constants = _draw_values(rng, template.values, blueprint, world, swap, x)
    if constants is None:
        return None
    stored = _binding(blueprint.names, swap, x) | constants
    spoken = _binding(blueprint.concepts, swap, x) | constants
    dimension = part(blueprint.domain, x)
    assert isinstance(dimension, Dimension)
    text = template.question.format(**spoken, T=str(blueprint.names[x]), one=dimension.one)
    if blueprint.level == 0:
        # The question names the stored table: at this level only the columns have to be looked up.
        spoken["X"] = Table(str(blueprint.names[x]), spoken["X"].columns)
    else:
        text = f"Database {blueprint.database}: {text}"
    gold = expand(template.sql)
    return Question(
        template=template.name,
        text=text,
        sql=gold.format(**stored),
        rule=template.rule,
        slips={kind: expand(sql).format(**stored) for kind, sql in template.slips.items()},
        guess=gold.format(**spoken),
        tables=_tables_used(gold, stored),
    )


def _binding(names: Names, swap: set[str], x: str) -> dict[str, Any]:
    bound: dict[str, Any] = {
        table: _swapped(names[table]) if table in swap else names[table] for table in names
    }
    bound["X"] = bound[x]
    if "F" in bound:
        bound["fk"] = bound["F"].columns[x.lower()]
    return bound


def _swapped(table: Table) -> Table:
    return Table(str(table), {role: table.columns[_SWAPPED.get(role, role)] for role in table.columns})


def _draw_values(
    rng: Random, wanted: str, blueprint: Blueprint, world: dict[str, Any], swap: set[str], x: str
) -> dict[str, Any] | None:
    constants: dict[str, Any] = {}
    for item in wanted.split():
        name, source = item.split("=")
        if "." not in source:
            low, high = source.split("-")
            constants[name] = rng.randint(int(low), int(high))
            continue
        table, role = source.split(".")
        table = x if table == "X" else table
        role = _SWAPPED.get(role, role) if table in swap else role
        candidates = _column(blueprint, world, table, role)
        if not candidates:
            return None
        constants[name] = rng.choice(candidates)
    if "d" in constants and "e" in constants:
        constants["d"], constants["e"] = sorted((constants["d"], constants["e"]))
    return constants


def _column(blueprint: Blueprint, world: dict[str, Any], table: str, role: str) -> list[Any]:
    position = blueprint.orders[table].index(role)
    rows = world["tables"][list(blueprint.orders).index(table)]["rows"]
    return sorted({row[position] for row in rows if row[position] is not None})


def _tables_used(sql: str, stored: dict[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(stored[role]) for role in re.findall(r"\{([ABFX])\}", sql)))

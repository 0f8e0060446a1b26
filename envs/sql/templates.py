"""Questions and their gold SQL of levels 0 to 2, with near-miss answers that must score 0.

Placeholders: `{A}`, `{B}`, `{F}` are tables (`schemas`), `{X}` is A or B, `{fk}` the column of F that refers to
X, `{X.cat}` a column by role. In a question they become spoken concepts, in SQL the stored names. `{T}` is the
stored name of X, `{one}` X in the singular. `values` draws constants from the task's own rows: `v=X.cat` a value
of that column, `k=2-3` an integer of that range; where both `d` and `e` are drawn, d <= e. `@fx` and the other
`FRAGMENTS` are pieces of SQL that many questions share.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from envs.sql.queries import Rule

_ABF = "FROM {A} a JOIN {F} f ON f.{F.a} = a.id JOIN {B} b ON f.{F.b} = b.id"

FRAGMENTS = {
    "@fx": "FROM {F} f JOIN {X} x ON f.{fk} = x.id",
    "@abf": _ABF,
    "@month": "SUBSTR(f.{F.date}, 1, 7)",
    "@totals": "SELECT a.id AS id, a.{A.cat} AS grp, a.{A.name} AS who, SUM(f.{F.num}) AS total "
    + _ABF
    + " WHERE b.{B.cat} = '{v}' AND f.{F.num} IS NOT NULL GROUP BY a.id",
}


@dataclass(frozen=True, slots=True)
class Template:
    """One kind of question. `slips` are wrong answers by kind; `rule` says how results are compared."""

    name: str
    question: str
    sql: str
    values: str
    slips: dict[str, str] = field(default_factory=dict)
    rule: Rule = "bag"


def expand(sql: str) -> str:
    """Write out the fragments of a template's SQL."""
    for name, fragment in FRAGMENTS.items():
        sql = sql.replace(name, fragment)
    return sql


LEVEL_0 = (
    Template(
        "list_number",
        "{X.num} of {T} where {X.cat} = '{v}'",
        "SELECT {X.num} FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT {X.num} FROM {X}",
            "filter": "SELECT {X.num} FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT MAX({X.num}) FROM {X}",
            "column": "SELECT {X.cat2} FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "list_category",
        "{X.cat2} of {T} where {X.cat} = '{v}'",
        "SELECT {X.cat2} FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT {X.cat2} FROM {X}",
            "filter": "SELECT {X.cat2} FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT COUNT(*) FROM {X} WHERE {X.cat} = '{v}'",
            "column": "SELECT {X.num} FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "count",
        "count {T} where {X.cat} = '{v}'",
        "SELECT COUNT(*) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT COUNT(*) FROM {X}",
            "filter": "SELECT COUNT(*) FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT {X.num} FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "max",
        "max {X.num} of {T} where {X.cat} = '{v}'",
        "SELECT MAX({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT MAX({X.num}) FROM {X}",
            "filter": "SELECT MAX({X.num}) FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT MIN({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "min",
        "min {X.num} of {T} where {X.cat} = '{v}'",
        "SELECT MIN({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT MIN({X.num}) FROM {X}",
            "filter": "SELECT MIN({X.num}) FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT MAX({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
)

LEVEL_1 = (
    Template(
        "count",
        "How many {X} have {X.cat} '{v}'?",
        "SELECT COUNT(*) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT COUNT(*) FROM {X}",
            "filter": "SELECT COUNT(*) FROM {X} WHERE {X.cat2} = '{v}'",
            "aggregate": "SELECT {X.name} FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "list_over",
        "List the {X.name} of all {X} with {X.cat} '{v}' and {X.num} over {n}.",
        "SELECT {X.name} FROM {X} WHERE {X.cat} = '{v}' AND {X.num} > {n}",
        "v=X.cat n=X.num",
        {
            "no_where": "SELECT {X.name} FROM {X} WHERE {X.cat} = '{v}'",
            "filter": "SELECT {X.name} FROM {X} WHERE {X.num} > {n}",
            "column": "SELECT {X.name}, {X.num} FROM {X} WHERE {X.cat} = '{v}' AND {X.num} > {n}",
        },
    ),
    Template(
        "average",
        "What is the average {X.num} of {X} with {X.cat} '{v}'? Leave out missing values.",
        "SELECT AVG({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT AVG({X.num}) FROM {X}",
            "aggregate": "SELECT SUM({X.num}) FROM {X} WHERE {X.cat} = '{v}'",
            "missing": "SELECT AVG(COALESCE({X.num}, 0)) FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    Template(
        "missing",
        "How many {F} with {F.flag} '{v}' have no {F.num}?",
        "SELECT COUNT(*) FROM {F} WHERE {F.flag} = '{v}' AND {F.num} IS NULL",
        "v=F.flag",
        {
            "missing": "SELECT COUNT(*) FROM {F} WHERE {F.flag} = '{v}' AND {F.num} = NULL",
            "no_where": "SELECT COUNT(*) FROM {F} WHERE {F.flag} = '{v}'",
            "aggregate": "SELECT COUNT({F.num}) FROM {F} WHERE {F.flag} = '{v}'",
        },
    ),
    Template(
        "distinct",
        "How many different {X.cat2} occur among {X} with {X.cat} '{v}'?",
        "SELECT COUNT(DISTINCT {X.cat2}) FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "aggregate": "SELECT COUNT({X.cat2}) FROM {X} WHERE {X.cat} = '{v}'",
            "column": "SELECT DISTINCT {X.cat2} FROM {X} WHERE {X.cat} = '{v}'",
            "filter": "SELECT COUNT(DISTINCT {X.cat2}) FROM {X} WHERE {X.cat2} = '{v}'",
        },
    ),
    Template(
        "rows",
        "List {F.date} and {F.num} of all {F} with {F.flag} '{v}' and {F.num} of at least {n}. Repeat equal "
        "rows.",
        "SELECT {F.date}, {F.num} FROM {F} WHERE {F.flag} = '{v}' AND {F.num} >= {n}",
        "v=F.flag n=F.num",
        {
            "no_where": "SELECT {F.date}, {F.num} FROM {F} WHERE {F.num} >= {n}",
            "filter": "SELECT {F.date}, {F.num} FROM {F} WHERE {F.flag} = '{v}' AND {F.num} <= {n}",
            "column": "SELECT {F.num}, {F.date} FROM {F} WHERE {F.flag} = '{v}' AND {F.num} >= {n}",
        },
    ),
    Template(
        "order",
        "List the {X.name} of all {X} with {X.cat} '{v}', latest {X.date} first.",
        "SELECT {X.name} FROM {X} WHERE {X.cat} = '{v}' ORDER BY {X.date} DESC",
        "v=X.cat",
        {
            "no_where": "SELECT {X.name} FROM {X} ORDER BY {X.date} DESC",
            "order": "SELECT {X.name} FROM {X} WHERE {X.cat} = '{v}' ORDER BY {X.date}",
            "column": "SELECT {X.name}, {X.date} FROM {X} WHERE {X.cat} = '{v}' ORDER BY {X.date} DESC",
        },
        "ordered",
    ),
)

LEVEL_2 = (
    Template(
        "count",
        "How many {F} belong to {X} with {X.cat} '{v}'?",
        "SELECT COUNT(*) @fx WHERE x.{X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "SELECT COUNT(*) @fx",
            "filter": "SELECT COUNT(*) @fx WHERE x.{X.cat2} = '{v}'",
            "aggregate": "SELECT COUNT(DISTINCT x.id) @fx WHERE x.{X.cat} = '{v}'",
        },
    ),
    Template(
        "total",
        "What is the total {F.num} over all {F} of the {one} with {X.name} '{v}'?",
        "SELECT SUM(f.{F.num}) @fx WHERE x.{X.name} = '{v}'",
        "v=X.name",
        {
            "no_where": "SELECT SUM(f.{F.num}) @fx",
            "filter": "SELECT SUM(f.{F.num}) @fx WHERE x.{X.cat} = '{v}'",
            "aggregate": "SELECT COUNT(f.{F.num}) @fx WHERE x.{X.name} = '{v}'",
        },
    ),
    Template(
        "order",
        "List {F.date} and {F.num} of all {F} that belong to {X} with {X.cat} '{v}', earliest first, then "
        "smallest {F.num} first. Leave out {F} without {F.num}.",
        "SELECT f.{F.date}, f.{F.num} @fx WHERE x.{X.cat} = '{v}' AND f.{F.num} IS NOT NULL ORDER BY "
        "f.{F.date}, f.{F.num}",
        "v=X.cat",
        {
            "no_where": "SELECT f.{F.date}, f.{F.num} @fx WHERE f.{F.num} IS NOT NULL ORDER BY f.{F.date}, "
            "f.{F.num}",
            "order": "SELECT f.{F.date}, f.{F.num} @fx WHERE x.{X.cat} = '{v}' AND f.{F.num} IS NOT NULL "
            "ORDER BY f.{F.date} DESC, f.{F.num}",
            "column": "SELECT f.{F.num}, f.{F.date} @fx WHERE x.{X.cat} = '{v}' AND f.{F.num} IS NOT NULL "
            "ORDER BY f.{F.date}, f.{F.num}",
        },
        "ordered",
    ),
    Template(
        "having_any",
        "List the {X.name} of all {X} that have {F} with {F.flag} '{v}', each once.",
        "SELECT DISTINCT x.{X.name} @fx WHERE f.{F.flag} = '{v}'",
        "v=F.flag",
        {
            "no_where": "SELECT DISTINCT x.{X.name} @fx",
            "duplicates": "SELECT x.{X.name} @fx WHERE f.{F.flag} = '{v}'",
            "filter": "SELECT x.{X.name} FROM {X} x WHERE x.id NOT IN (SELECT {fk} FROM {F} WHERE {F.flag} = "
            "'{v}')",
        },
    ),
    Template(
        "between",
        "What is the largest {F.num} among {F} from {d} to {e}, both included, that belong to {X} with "
        "{X.cat} '{v}'?",
        "SELECT MAX(f.{F.num}) @fx WHERE x.{X.cat} = '{v}' AND f.{F.date} BETWEEN '{d}' AND '{e}'",
        "v=X.cat d=F.date e=F.date",
        {
            "no_where": "SELECT MAX(f.{F.num}) @fx WHERE x.{X.cat} = '{v}'",
            "filter": "SELECT MAX(f.{F.num}) @fx WHERE f.{F.date} BETWEEN '{d}' AND '{e}'",
            "aggregate": "SELECT MIN(f.{F.num}) @fx WHERE x.{X.cat} = '{v}' AND f.{F.date} BETWEEN '{d}' AND "
            "'{e}'",
        },
    ),
    Template(
        "latest",
        "For each {one} with {X.cat} '{v}' that has any {F}, give {X.name} and the {F.date} of the latest.",
        "SELECT x.{X.name}, MAX(f.{F.date}) @fx WHERE x.{X.cat} = '{v}' GROUP BY x.id",
        "v=X.cat",
        {
            "no_where": "SELECT x.{X.name}, MAX(f.{F.date}) @fx GROUP BY x.id",
            "aggregate": "SELECT x.{X.name}, MIN(f.{F.date}) @fx WHERE x.{X.cat} = '{v}' GROUP BY x.id",
            "column": "SELECT MAX(f.{F.date}), x.{X.name} @fx WHERE x.{X.cat} = '{v}' GROUP BY x.id",
        },
    ),
)

"""Tasks that change data, by level, with near misses that leave another database; placeholders as in `templates`."""

from __future__ import annotations

from envs.sql.templates import Template

_WITH_B = "{fk} IN (SELECT id FROM {X} WHERE {X.cat} = '{v}')"


def _change(name: str, question: str, sql: str, values: str, slips: dict[str, str]) -> Template:
    return Template(name, question, sql, values, slips, "state")


LEVEL_0 = (
    _change(
        "set_number",
        "set {X.num} of {T} to {k} where {X.cat} = '{v}'",
        "UPDATE {X} SET {X.num} = {k} WHERE {X.cat} = '{v}'",
        "v=X.cat k=1-9",
        {
            "no_where": "UPDATE {X} SET {X.num} = {k}",
            "filter": "UPDATE {X} SET {X.num} = {k} WHERE {X.cat2} = '{v}'",
            "column": "UPDATE {X} SET {X.cat2} = {k} WHERE {X.cat} = '{v}'",
        },
    ),
    _change(
        "remove",
        "delete {T} where {X.cat} = '{v}'",
        "DELETE FROM {X} WHERE {X.cat} = '{v}'",
        "v=X.cat",
        {
            "no_where": "DELETE FROM {X}",
            "filter": "DELETE FROM {X} WHERE {X.cat2} = '{v}'",
            "column": "UPDATE {X} SET {X.cat} = NULL WHERE {X.cat} = '{v}'",
        },
    ),
)

LEVEL_1 = (
    _change(
        "raise",
        "Raise the {X.num} of all {X} with {X.cat} '{v}' and {X.num} over {n} by {k}.",
        "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.cat} = '{v}' AND {X.num} > {n}",
        "v=X.cat n=X.num k=2-9",
        {
            "no_where": "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.cat} = '{v}'",
            "filter": "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.num} > {n}",
            "column": "UPDATE {X} SET {X.num} = {k} WHERE {X.cat} = '{v}' AND {X.num} > {n}",
        },
    ),
    _change(
        "fill",
        "Where {F} with {F.flag} '{v}' have no {F.num}, set it to {k}.",
        "UPDATE {F} SET {F.num} = {k} WHERE {F.flag} = '{v}' AND {F.num} IS NULL",
        "v=F.flag k=100-200",
        {
            "missing": "UPDATE {F} SET {F.num} = {k} WHERE {F.flag} = '{v}' AND {F.num} = NULL",
            "no_where": "UPDATE {F} SET {F.num} = {k} WHERE {F.num} IS NULL",
            "filter": "UPDATE {F} SET {F.num} = {k} WHERE {F.flag} = '{v}'",
        },
    ),
)

LEVEL_2 = (
    _change(
        "remove_events",
        "Delete all {F} that belong to {X} with {X.cat} '{v}'.",
        "DELETE FROM {F} WHERE " + _WITH_B,
        "v=X.cat",
        {
            "no_where": "DELETE FROM {F}",
            "filter": "DELETE FROM {F} WHERE {fk} IN (SELECT id FROM {X} WHERE {X.cat2} = '{v}')",
            "table": "DELETE FROM {X} WHERE {X.cat} = '{v}'",
        },
    ),
    _change(
        "mark_events",
        "Set the {F.flag} of all {F} from {d} to {e}, both included, that belong to {X} with {X.cat} '{v}' to 'done'.",
        "UPDATE {F} SET {F.flag} = 'done' WHERE {F.date} BETWEEN '{d}' AND '{e}' AND " + _WITH_B,
        "v=X.cat d=F.date e=F.date",
        {
            "no_where": "UPDATE {F} SET {F.flag} = 'done' WHERE " + _WITH_B,
            "filter": "UPDATE {F} SET {F.flag} = 'done' WHERE {F.date} BETWEEN '{d}' AND '{e}'",
            "column": "UPDATE {F} SET {F.num} = 'done' WHERE {F.date} BETWEEN '{d}' AND '{e}' AND " + _WITH_B,
        },
    ),
)

_BOTH = "{F.a} IN (SELECT id FROM {A} WHERE {A.cat} = '{w}') AND {F.b} IN (SELECT id FROM {B} WHERE {B.cat} = '{v}')"

LEVEL_3 = (
    _change(
        "remove_both",
        "Delete all {F} of {A} with {A.cat} '{w}' with {B} of {B.cat} '{v}'.",
        "DELETE FROM {F} WHERE " + _BOTH,
        "v=B.cat w=A.cat",
        {
            "no_where": "DELETE FROM {F} WHERE {F.b} IN (SELECT id FROM {B} WHERE {B.cat} = '{v}')",
            "filter": "DELETE FROM {F} WHERE {F.a} IN (SELECT id FROM {A} WHERE {A.cat} = '{w}')",
            "either": "DELETE FROM {F} WHERE {F.a} IN (SELECT id FROM {A} WHERE {A.cat} = '{w}') OR {F.b} IN (SELECT "
            "id FROM {B} WHERE {B.cat} = '{v}')",
        },
    ),
    _change(
        "double_both",
        "Double the {F.num} of all {F} of {A} with {A.cat} '{w}' with {B} of {B.cat} '{v}'.",
        "UPDATE {F} SET {F.num} = {F.num} * 2 WHERE " + _BOTH,
        "v=B.cat w=A.cat",
        {
            "no_where": "UPDATE {F} SET {F.num} = {F.num} * 2 WHERE {F.b} IN (SELECT id FROM {B} WHERE {B.cat} = "
            "'{v}')",
            "column": "UPDATE {F} SET {F.num} = 2 WHERE " + _BOTH,
            "aggregate": "UPDATE {F} SET {F.num} = {F.num} + 2 WHERE " + _BOTH,
        },
    ),
)

_TOTALS = "SELECT {fk} FROM {F} WHERE {F.num} IS NOT NULL GROUP BY {fk}"

LEVEL_4 = (
    _change(
        "remove_idle",
        "Delete all {A} with {A.cat} '{w}' that have no {F} with {B} of {B.cat} '{v}' at all.",
        "DELETE FROM {A} WHERE {A.cat} = '{w}' AND NOT EXISTS (SELECT 1 FROM {F} f JOIN {B} b ON f.{F.b} = b.id "
        "WHERE f.{F.a} = {A}.id AND b.{B.cat} = '{v}')",
        "v=B.cat w=A.cat",
        {
            "filter": "DELETE FROM {A} WHERE {A.cat} = '{w}' AND EXISTS (SELECT 1 FROM {F} f JOIN {B} b ON f.{F.b} = "
            "b.id WHERE f.{F.a} = {A}.id AND b.{B.cat} = '{v}')",
            "no_where": "DELETE FROM {A} WHERE NOT EXISTS (SELECT 1 FROM {F} f JOIN {B} b ON f.{F.b} = b.id WHERE "
            "f.{F.a} = {A}.id AND b.{B.cat} = '{v}')",
            "all": "DELETE FROM {A} WHERE {A.cat} = '{w}'",
        },
    ),
    _change(
        "raise_busy",
        "Raise by {k} the {X.num} of all {X} with {X.cat} '{v}' whose total {F.num} over their {F} is above the "
        "average of these totals over all {X} that have any; leave out {F} without {F.num}.",
        "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.cat} = '{v}' AND id IN ("
        + _TOTALS
        + " HAVING SUM({F.num}) > "
        "(SELECT AVG(total) FROM (SELECT SUM({F.num}) AS total FROM {F} WHERE {F.num} IS NOT NULL "
        "GROUP BY {fk}) AS t))",
        "v=X.cat k=2-9",
        {
            "no_where": "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.cat} = '{v}'",
            "aggregate": "UPDATE {X} SET {X.num} = {X.num} + {k} WHERE {X.cat} = '{v}' AND id IN ("
            + _TOTALS
            + " HAVING SUM({F.num}) > (SELECT AVG({F.num}) FROM {F}))",
            "column": "UPDATE {X} SET {X.num} = {k} WHERE {X.cat} = '{v}' AND id IN (" + _TOTALS + " HAVING "
            "SUM({F.num}) > (SELECT AVG(total) FROM (SELECT SUM({F.num}) AS total FROM {F} WHERE {F.num} IS NOT NULL "
            "GROUP BY {fk}) AS t))",
        },
    ),
)

CHANGES: dict[int, tuple[Template, ...]] = {0: LEVEL_0, 1: LEVEL_1, 2: LEVEL_2, 3: LEVEL_3, 4: LEVEL_4}
"""By level."""

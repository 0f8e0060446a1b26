"""Questions of levels 3 and 4: three tables, groups and outer joins; then nested queries and windows."""

from __future__ import annotations

from envs.sql.templates import LEVEL_0, LEVEL_1, LEVEL_2, Template

LEVEL_3 = (
    Template(
        "group",
        "For each {A.cat}, how many {F} are there with {B} of {B.cat} '{v}'? Give {A.cat} and the number; "
        "leave out those without any.",
        "SELECT a.{A.cat}, COUNT(*) @abf WHERE b.{B.cat} = '{v}' GROUP BY a.{A.cat}",
        "v=B.cat",
        {
            "no_where": "SELECT a.{A.cat}, COUNT(*) @abf GROUP BY a.{A.cat}",
            "aggregate": "SELECT a.{A.cat}, COUNT(DISTINCT a.id) @abf WHERE b.{B.cat} = '{v}' GROUP BY "
            "a.{A.cat}",
            "column": "SELECT COUNT(*), a.{A.cat} @abf WHERE b.{B.cat} = '{v}' GROUP BY a.{A.cat}",
        },
    ),
    Template(
        "outer",
        "For every {A} with {A.cat} '{w}', give {A.name} and the number of its {F} with {B} of {B.cat} '{v}' "
        "(0 if none), largest number first, equal numbers by {A.name}.",
        "SELECT a.{A.name}, COUNT(b.id) FROM {A} a LEFT JOIN {F} f ON f.{F.a} = a.id LEFT JOIN {B} b ON b.id "
        "= f.{F.b} AND b.{B.cat} = '{v}' WHERE a.{A.cat} = '{w}' GROUP BY a.id ORDER BY COUNT(b.id) DESC, "
        "a.{A.name}",
        "v=B.cat w=A.cat",
        {
            "inner": "SELECT a.{A.name}, COUNT(*) @abf WHERE b.{B.cat} = '{v}' AND a.{A.cat} = '{w}' GROUP BY "
            "a.id ORDER BY COUNT(*) DESC, a.{A.name}",
            "aggregate": "SELECT a.{A.name}, COUNT(*) FROM {A} a LEFT JOIN {F} f ON f.{F.a} = a.id LEFT JOIN "
            "{B} b ON b.id = f.{F.b} AND b.{B.cat} = '{v}' WHERE a.{A.cat} = '{w}' GROUP BY a.id ORDER BY "
            "COUNT(*) DESC, a.{A.name}",
            "no_where": "SELECT a.{A.name}, COUNT(b.id) FROM {A} a LEFT JOIN {F} f ON f.{F.a} = a.id LEFT "
            "JOIN {B} b ON b.id = f.{F.b} AND b.{B.cat} = '{v}' GROUP BY a.id ORDER BY COUNT(b.id) DESC, "
            "a.{A.name}",
        },
        "ordered",
    ),
    Template(
        "having",
        "Which {A} have at least {k} {F} with {B} of {B.cat} '{v}'? List {A.name}.",
        "SELECT a.{A.name} @abf WHERE b.{B.cat} = '{v}' GROUP BY a.id HAVING COUNT(*) >= {k}",
        "v=B.cat k=2-3",
        {
            "no_where": "SELECT a.{A.name} @abf GROUP BY a.id HAVING COUNT(*) >= {k}",
            "aggregate": "SELECT a.{A.name} @abf WHERE b.{B.cat} = '{v}' GROUP BY a.id HAVING COUNT(*) > {k}",
            "filter": "SELECT DISTINCT a.{A.name} @abf WHERE b.{B.cat} = '{v}'",
        },
    ),
    Template(
        "top",
        "Give {A.name} and total {F.num} of the 3 {A} with the largest total {F.num} over {F} with {B} of "
        "{B.cat} '{v}', largest first, equal totals by {A.name}. Leave out {F} without {F.num}.",
        "SELECT a.{A.name}, SUM(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' AND f.{F.num} IS NOT NULL GROUP BY "
        "a.id ORDER BY SUM(f.{F.num}) DESC, a.{A.name} LIMIT 3",
        "v=B.cat",
        {
            "no_where": "SELECT a.{A.name}, SUM(f.{F.num}) @abf GROUP BY a.id ORDER BY SUM(f.{F.num}) DESC, "
            "a.{A.name} LIMIT 3",
            "aggregate": "SELECT a.{A.name}, MAX(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' GROUP BY a.id ORDER "
            "BY MAX(f.{F.num}) DESC, a.{A.name} LIMIT 3",
            "order": "SELECT a.{A.name}, SUM(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' AND f.{F.num} IS NOT "
            "NULL GROUP BY a.id ORDER BY SUM(f.{F.num}), a.{A.name} LIMIT 3",
        },
        "ordered",
    ),
    Template(
        "missing_group",
        "For each {F.flag}, a missing one being a group of its own, what is the average {F.num} over {F} of "
        "{A} with {A.cat} '{w}' with {B} of {B.cat} '{v}'? Give {F.flag} and the average of the {F.num} that "
        "are not missing.",
        "SELECT f.{F.flag}, AVG(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' AND a.{A.cat} = '{w}' GROUP BY "
        "f.{F.flag}",
        "v=B.cat w=A.cat",
        {
            "missing": "SELECT f.{F.flag}, AVG(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' AND a.{A.cat} = '{w}' "
            "AND f.{F.flag} IS NOT NULL GROUP BY f.{F.flag}",
            "aggregate": "SELECT f.{F.flag}, SUM(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' AND a.{A.cat} = "
            "'{w}' GROUP BY f.{F.flag}",
            "no_where": "SELECT f.{F.flag}, AVG(f.{F.num}) @abf WHERE b.{B.cat} = '{v}' GROUP BY f.{F.flag}",
        },
    ),
    Template(
        "distinct_group",
        "For each {B.cat}, how many different {A} with {A.cat} '{w}' have {F} with such {B}? Give {B.cat} and "
        "the number; leave out those without any.",
        "SELECT b.{B.cat}, COUNT(DISTINCT a.id) @abf WHERE a.{A.cat} = '{w}' GROUP BY b.{B.cat}",
        "w=A.cat",
        {
            "no_where": "SELECT b.{B.cat}, COUNT(DISTINCT a.id) @abf GROUP BY b.{B.cat}",
            "aggregate": "SELECT b.{B.cat}, COUNT(*) @abf WHERE a.{A.cat} = '{w}' GROUP BY b.{B.cat}",
            "column": "SELECT COUNT(DISTINCT a.id), b.{B.cat} @abf WHERE a.{A.cat} = '{w}' GROUP BY b.{B.cat}",
        },
    ),
)

LEVEL_4 = (
    Template(
        "above_average",
        "Take the {F} with {B} of {B.cat} '{v}', without those that have no {F.num}, and add up {F.num} for "
        "each of the {A}. List the {A.name} of all {A} whose total is above the average of these totals.",
        "WITH t AS (@totals) SELECT who FROM t WHERE total > (SELECT AVG(total) FROM t)",
        "v=B.cat",
        {
            "aggregate": "WITH t AS (@totals) SELECT who FROM t WHERE total > (SELECT AVG({F.num}) FROM {F})",
            "filter": "WITH t AS (@totals) SELECT who FROM t WHERE total < (SELECT AVG(total) FROM t)",
            "no_where": "WITH t AS (@totals) SELECT who FROM t",
        },
    ),
    Template(
        "none",
        "List the {A.name} of all {A} with {A.cat} '{w}' that have no {F} with {B} of {B.cat} '{v}' at all.",
        "SELECT a.{A.name} FROM {A} a WHERE a.{A.cat} = '{w}' AND NOT EXISTS (SELECT 1 FROM {F} f JOIN {B} b "
        "ON f.{F.b} = b.id WHERE f.{F.a} = a.id AND b.{B.cat} = '{v}')",
        "v=B.cat w=A.cat",
        {
            "join": "SELECT DISTINCT a.{A.name} @abf WHERE a.{A.cat} = '{w}' AND b.{B.cat} <> '{v}'",
            "filter": "SELECT a.{A.name} FROM {A} a WHERE a.{A.cat} = '{w}' AND EXISTS (SELECT 1 FROM {F} f "
            "JOIN {B} b ON f.{F.b} = b.id WHERE f.{F.a} = a.id AND b.{B.cat} = '{v}')",
            "no_where": "SELECT a.{A.name} FROM {A} a WHERE a.{A.cat} = '{w}'",
        },
    ),
    Template(
        "best",
        "For each {A.cat}, which of the {A} has the largest total {F.num} over {F} with {B} of {B.cat} '{v}'? "
        "Leave out {F} without {F.num}; of equal totals take the first {A.name}. Give {A.cat}, {A.name} and "
        "the total.",
        "WITH t AS (@totals) SELECT grp, who, total FROM (SELECT grp, who, total, ROW_NUMBER() OVER "
        "(PARTITION BY grp ORDER BY total DESC, who) AS n FROM t) AS s WHERE n = 1",
        "v=B.cat",
        {
            "order": "WITH t AS (@totals) SELECT grp, who, total FROM (SELECT grp, who, total, ROW_NUMBER() "
            "OVER (PARTITION BY grp ORDER BY total, who) AS n FROM t) AS s WHERE n = 1",
            "no_where": "WITH t AS (@totals) SELECT grp, who, total FROM t",
            "aggregate": "WITH t AS (@totals) SELECT grp, who, total FROM t ORDER BY total DESC LIMIT 1",
        },
    ),
    Template(
        "share",
        "Which share of the {F} of {A} with {A.cat} '{w}' is with {B} of {B.cat} '{v}'? Give a number from 0 "
        "to 1.",
        "SELECT AVG(CASE WHEN b.{B.cat} = '{v}' THEN 1.0 ELSE 0.0 END) @abf WHERE a.{A.cat} = '{w}'",
        "v=B.cat w=A.cat",
        {
            "integer": "SELECT SUM(b.{B.cat} = '{v}') / COUNT(*) @abf WHERE a.{A.cat} = '{w}'",
            "percent": "SELECT AVG(CASE WHEN b.{B.cat} = '{v}' THEN 100.0 ELSE 0.0 END) @abf WHERE a.{A.cat} "
            "= '{w}'",
            "no_where": "SELECT AVG(CASE WHEN b.{B.cat} = '{v}' THEN 1.0 ELSE 0.0 END) @abf",
        },
    ),
    Template(
        "running",
        "For each month (YYYY-MM) with {F} of {A} with {A.cat} '{w}' with {B} of {B.cat} '{v}', give the "
        "month, the number of such {F} and the running total of that number, in the order of months.",
        "SELECT @month, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY @month) @abf WHERE b.{B.cat} = '{v}' AND "
        "a.{A.cat} = '{w}' GROUP BY @month ORDER BY 1",
        "v=B.cat w=A.cat",
        {
            "aggregate": "SELECT @month, COUNT(*), COUNT(*) @abf WHERE b.{B.cat} = '{v}' AND a.{A.cat} = "
            "'{w}' GROUP BY @month ORDER BY 1",
            "order": "SELECT @month, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY @month DESC) @abf WHERE b.{B.cat} "
            "= '{v}' AND a.{A.cat} = '{w}' GROUP BY @month ORDER BY 1",
            "no_where": "SELECT @month, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY @month) @abf WHERE b.{B.cat} = "
            "'{v}' GROUP BY @month ORDER BY 1",
        },
        "ordered",
    ),
    Template(
        "every",
        "Which {A} have {F} with {B} of every {B.cat} that occurs among {B}? List {A.name}.",
        "SELECT a.{A.name} @abf GROUP BY a.id HAVING COUNT(DISTINCT b.{B.cat}) = (SELECT COUNT(DISTINCT "
        "{B.cat}) FROM {B})",
        "",
        {
            "aggregate": "SELECT a.{A.name} @abf GROUP BY a.id HAVING COUNT(*) >= (SELECT COUNT(DISTINCT "
            "{B.cat}) FROM {B})",
            "no_where": "SELECT DISTINCT a.{A.name} @abf",
            "filter": "SELECT a.{A.name} @abf GROUP BY a.id HAVING COUNT(DISTINCT b.{B.cat}) < (SELECT "
            "COUNT(DISTINCT {B.cat}) FROM {B})",
        },
    ),
)

TEMPLATES: dict[int, tuple[Template, ...]] = {0: LEVEL_0, 1: LEVEL_1, 2: LEVEL_2, 3: LEVEL_3, 4: LEVEL_4}
"""By level."""

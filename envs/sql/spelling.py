"""What the evaluation of Spider does to a query's text before it runs it."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | \[[^\]]*\] | --[^\n]* | /\*.*?\*/ | \w+ | .""",
    re.VERBOSE | re.DOTALL,
)
_THIS_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def spider_spelling(sql: str, *, keep_distinct: bool = False) -> str:
    """Join split operators, drop DISTINCT unless it is kept, and take this year for 2020."""
    for split, joined in (("> =", ">="), ("< =", "<="), ("! =", "!=")):
        sql = sql.replace(split, joined)
    if not keep_distinct:
        sql = "".join(token for token in _TOKEN.findall(sql) if token.lower() != "distinct")
    return _THIS_YEAR.sub("2020 ", sql)


def is_ordered(gold: str) -> bool:
    """Whether the order of rows counts: the gold query has ORDER BY anywhere."""
    return "order by" in gold.lower()

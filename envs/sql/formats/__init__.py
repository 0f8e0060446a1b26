"""Files of the field as tasks of `sql-v1`: which there are, and how each is recognised."""

from __future__ import annotations

from collections.abc import Mapping

from envs.formats import Format
from envs.sql.formats import bird, rows, spider, spider2, synsql

__all__ = ["FORMATS"]

FORMATS: Mapping[str, Format] = {
    "bird": Format(read=bird.read, fields=bird.FIELDS, folder=bird.is_folder),
    "spider": Format(read=spider.read, fields=spider.FIELDS, folder=spider.is_folder),
    "spider2-lite": Format(read=spider2.read, fields=spider2.FIELDS, folder=spider2.is_folder),
    "synsql": Format(read=synsql.read, fields=synsql.FIELDS),
    "rows": Format(read=rows.read, fields=rows.FIELDS),
}
"""By name. `rows` is the project's own JSONL with the golds run."""

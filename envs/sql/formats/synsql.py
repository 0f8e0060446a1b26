"""SynSQL and OmniSQL: rows with `external_knowledge` and `sql`, beside `databases/<db>/<db>.sqlite`.

    [{"db_id", "question", "external_knowledge", "sql", "sql_complexity", "question_style", "cot"}]

Graded as sets of rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envs.formats import collect, read_records, required
from envs.sql.formats.building import question_task
from envs.sql.formats.databases import Databases
from envs.taskrows import TaskFile
from envs.types import Split, Task

FIELDS = frozenset({"db_id", "question", "external_knowledge", "sql"})
TIME_S = 10.0
_HOMES = ("databases", "database")


def read(path: Path, split: Split) -> TaskFile:
    """The tasks of a file."""
    databases = Databases(path.parent, _HOMES)

    def convert(row: dict[str, Any]) -> list[Task]:
        file = databases.find(required(row, "db_id"), "db_id")
        metadata = {
            "format": "synsql",
            "db_id": row["db_id"],
            "complexity": row.get("sql_complexity"),
            "style": row.get("question_style"),
        }
        return [
            question_task(
                databases,
                file,
                question=required(row, "question"),
                knowledge=required(row, "external_knowledge", (str, type(None))) or "",
                answer={"sql": required(row, "sql"), "rule": "set"},
                split=split,
                time_s=TIME_S,
                metadata=metadata,
                field="sql",
            )
        ]

    return collect(path, read_records(path), convert)

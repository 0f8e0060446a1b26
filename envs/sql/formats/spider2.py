"""Spider2-lite: `spider2-lite.jsonl`, of which the tasks on SQLite (`local...`) are read.

    {"instance_id", "db", "question", "external_knowledge": name of a document | null}

    resource/databases/spider2-localdb/<db>.sqlite         also resource/databases/<db>.sqlite
    resource/documents/<external_knowledge>
    evaluation_suite/gold/spider2lite_eval.jsonl            {"instance_id", "condition_cols", "ignore_order"}
    evaluation_suite/gold/exec_result/<instance_id>[_a].csv or evaluation_suite/gold/sql/<instance_id>.sql

Several stored results are several accepted ones; the gold SQL is run where no result is stored.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.formats import BadRow, collect, read_records, required
from envs.sql.formats.building import question_task
from envs.sql.formats.databases import Databases
from envs.taskrows import TaskFile
from envs.types import Split, Task

FIELDS = frozenset({"instance_id", "db", "question", "external_knowledge"})
FILE = "spider2-lite.jsonl"
TIME_S = 30.0
MAX_GOLD_ROWS = 5000
_HOMES = (
    "resource/databases/spider2-localdb",
    "resource/databases/sqlite",
    "resource/databases",
    "databases",
)
_GOLD = "evaluation_suite/gold"


def is_folder(folder: Path) -> bool:
    """Whether a folder holds Spider2-lite."""
    return (folder / FILE).is_file()


def read(path: Path, split: Split) -> TaskFile:
    """The tasks of the file, or of the folder that it lies in."""
    path = path / FILE if path.is_dir() else path
    databases = Databases(path.parent, _HOMES)
    standards = _standards(path.parent / _GOLD / "spider2lite_eval.jsonl")

    def convert(row: dict[str, Any]) -> list[Task]:
        name = required(row, "instance_id")
        if not re.fullmatch(r"local\w{1,40}", name):
            raise BadRow("instance_id", f"only the local tasks run on SQLite, {name!r:.60} is for a service")
        file = databases.find(required(row, "db"), "db")
        document = required(row, "external_knowledge", (str, type(None)))
        return [
            question_task(
                databases,
                file,
                question=required(row, "question"),
                knowledge=databases.text(f"resource/documents/{document}") if document else "",
                answer=_answer(databases, name, standards.get(name, {})),
                split=split,
                time_s=TIME_S,
                metadata={"format": "spider2-lite", "db": row["db"], "instance_id": name},
                field="instance_id",
            )
        ]

    return collect(path, read_records(path), convert)


def _standards(path: Path) -> dict[str, Mapping[str, Any]]:
    """The rule of comparison of each task."""
    if not path.is_file():
        return {}
    rows = (row for _, row in read_records(path) if not isinstance(row, BadRow))
    return {str(row.get("instance_id")): row for row in rows}


def _answer(databases: Databases, name: str, standard: Mapping[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "rule": "spider2",
        "ignore_order": standard.get("ignore_order") is True,
        "sql": databases.text(f"{_GOLD}/sql/{name}.sql"),
    }
    columns = standard.get("condition_cols") or []
    results = _stored(databases, name)
    if results:
        each = _columns_of_each(columns, len(results))
        answer["results"] = [
            {"rows": rows, "columns": chosen} for rows, chosen in zip(results, each, strict=True)
        ]
    elif not answer["sql"].strip():
        raise BadRow(
            "instance_id", f"no gold of {name} beneath {_GOLD}: neither exec_result/*.csv nor sql/*.sql"
        )
    else:
        answer["columns"] = _columns_of_each(columns, 1)[0]
    return answer


def _stored(databases: Databases, name: str) -> list[list[list[str]]]:
    where = Path(databases.folder, _GOLD, "exec_result")
    if not where.is_dir():
        return []
    wanted = re.compile(rf"{re.escape(name)}(_[a-z])?\.csv")
    names = sorted(entry.name for entry in os.scandir(where) if wanted.fullmatch(entry.name))
    return [_table(databases.text(f"{_GOLD}/exec_result/{each}"), each) for each in names]


def _table(text: str, name: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise BadRow("instance_id", f"the stored result {name} is no CSV: {error}") from error
    if not rows or len(rows) - 1 > MAX_GOLD_ROWS:
        raise BadRow(
            "instance_id", f"a stored result has a header and at most {MAX_GOLD_ROWS} rows: {name} has not"
        )
    return [row for row in rows[1:] if row]


def _columns_of_each(columns: Any, count: int) -> list[list[int]]:
    """Which columns count in each of the golds: one list for all of them, or one a gold."""
    if not isinstance(columns, list):
        raise BadRow("instance_id", f"condition_cols is a list, got {columns!r:.60}")
    if columns and all(isinstance(each, list) for each in columns):
        if columns == [[]]:
            return [[] for _ in range(count)]
        if len(columns) != count:
            raise BadRow("instance_id", f"condition_cols has {len(columns)} lists for {count} golds")
        return columns
    return [columns for _ in range(count)]

"""Spider: `dev.json`, `train_spider.json` beside `tables.json` and `database/<db>/*.sqlite`.

    [{"db_id", "question", "query", ...}]

Graded as by its test suites: on every database file of the directory, as bags (in order if gold has ORDER BY), any
order of columns, DISTINCT dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envs.formats import collect, read_records, required
from envs.sql.formats.bird import joined
from envs.sql.formats.building import question_task
from envs.sql.formats.databases import Databases
from envs.taskrows import TaskFile
from envs.types import Split, Task

FIELDS = frozenset({"db_id", "question", "query"})
TIME_S = 10.0
_HOMES = ("database", "test_database", "databases")
_FILES = ("train_spider.json", "train_others.json", "dev.json", "test.json")


def is_folder(folder: Path) -> bool:
    """Whether a folder holds Spider: `tables.json` beside the directory `database`."""
    return (folder / "tables.json").is_file() and (folder / _HOMES[0]).is_dir()


def read(path: Path, split: Split) -> TaskFile:
    """The tasks of a file, or of a folder, whose `train_...` files are of the training split."""
    if not path.is_dir():
        return _read_file(path, split)
    files = [path / name for name in _FILES if (path / name).is_file()]
    return joined([_read_file(f, "train" if f.name.startswith("train") else split) for f in files])


def _read_file(path: Path, split: Split) -> TaskFile:
    databases = Databases(path.parent, _HOMES)

    def convert(row: dict[str, Any]) -> list[Task]:
        file = databases.find(required(row, "db_id"), "db_id")
        siblings = [
            {"database": {"folder": databases.folder, "file": other}}
            for other in databases.beside(file, "db_id")
        ]
        return [
            question_task(
                databases,
                file,
                question=required(row, "question"),
                knowledge="",
                answer={"sql": required(row, "query"), "rule": "spider", "siblings": siblings},
                split=split,
                time_s=TIME_S,
                metadata={"format": "spider", "db_id": row["db_id"]},
                field="query",
            )
        ]

    return collect(path, read_records(path), convert)

"""BIRD: `dev.json` and `train.json` beside `dev_databases/` and `train_databases/`.

    [{"question_id", "db_id", "question", "evidence", "SQL", "difficulty"}]

Graded as its execution accuracy: results are equal as sets, within 30 s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envs.formats import collect, read_records, required
from envs.sql.formats.building import question_task
from envs.sql.formats.databases import Databases
from envs.taskrows import TaskFile
from envs.types import Split, Task

FIELDS = frozenset({"db_id", "question", "evidence", "SQL"})
TIME_S = 30.0
_HOMES = ("dev_databases", "train_databases", "databases", "database")


def is_folder(folder: Path) -> bool:
    """Whether a folder holds BIRD: questions beside their databases."""
    return any((folder / home).is_dir() for home in _HOMES[:2]) and bool(_files(folder))


def _files(folder: Path) -> list[Path]:
    return [folder / name for name in ("train.json", "dev.json") if (folder / name).is_file()]


def read(path: Path, split: Split) -> TaskFile:
    """The tasks of a file, or of a folder, whose `train.json` is of the training split."""
    if not path.is_dir():
        return _read_file(path, split)
    parts = [_read_file(file, "train" if file.name == "train.json" else split) for file in _files(path)]
    return joined(parts)


def joined(parts: list[TaskFile]) -> TaskFile:
    """Several files as one."""
    return TaskFile(
        tasks=tuple(task for part in parts for task in part.tasks),
        errors=tuple(error for part in parts for error in part.errors),
    )


def _read_file(path: Path, split: Split) -> TaskFile:
    databases = Databases(path.parent, _HOMES)

    def convert(row: dict[str, Any]) -> list[Task]:
        file = databases.find(required(row, "db_id"), "db_id")
        metadata = {
            "format": "bird",
            "db_id": row["db_id"],
            "question_id": row.get("question_id"),
            "difficulty": row.get("difficulty"),
        }
        return [
            question_task(
                databases,
                file,
                question=required(row, "question"),
                knowledge=required(row, "evidence"),
                answer={"sql": required(row, "SQL"), "rule": "set"},
                split=split,
                time_s=TIME_S,
                metadata=metadata,
                field="SQL",
            )
        ]

    return collect(path, read_records(path), convert)

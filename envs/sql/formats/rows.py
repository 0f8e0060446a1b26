"""The project's own JSONL, with every gold run; `data.database.folder` may be relative to the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.errors import TaskError
from envs.formats import BadRow, collect, read_records
from envs.sql.answers import check_rule, read_answer
from envs.sql.formats.building import ENV_ID
from envs.sql.formats.databases import Databases
from envs.sql.grading import check_gold
from envs.sql.worldspec import read_shown, read_time, read_world
from envs.taskrows import TaskFile, read_row
from envs.tasksets import task_id
from envs.types import Split, Task

FIELDS = frozenset({"prompt"})


def read(path: Path, split: Split) -> TaskFile:
    """The tasks of a file; a row without a split is of `split`."""

    def convert(row: dict[str, Any]) -> list[Task]:
        given = {"env": ENV_ID, "split": split, **row}
        task = read_row(given)
        if not given.get("id"):
            task = replace(task, id=task_id(task.env, task.prompt, task.data, task.answer))
        task = replace(task, data=_complete(path.parent.resolve(), dict(task.data)))
        _run(task)
        return [task]

    return collect(path, read_records(path), convert)


def _complete(folder: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Make the folder of a database absolute, and read its tables where the row does not tell them."""
    database = data.get("database")
    if not isinstance(database, dict) or not isinstance(database.get("folder"), str):
        return data
    data["database"] = {**database, "folder": str(folder / database["folder"])}
    if "schema" not in data:
        try:
            file = str(read_world(data).spec["file"])
        except TaskError as error:
            raise BadRow("data", str(error)) from error
        data["schema"] = Databases(folder / database["folder"], ()).schema(file, "data")
    return data


def _run(task: Task) -> None:
    try:
        world = read_world(task.data)
        read_shown(task.data, world)
        answer = read_answer(task.answer, read_time(task.data))
        check_rule(task.data, answer)
    except TaskError as error:
        raise BadRow("data" if "data" in str(error) else "answer", str(error)) from error
    try:
        check_gold(answer, [world, *answer.siblings])
    except TaskError as error:
        raise BadRow("answer", str(error)) from error

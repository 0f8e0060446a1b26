"""A question, what one has to know for it, and its database become a task whose gold has been run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envs.errors import TaskError
from envs.formats import BadRow
from envs.sql.answers import read_answer
from envs.sql.formats.databases import Databases
from envs.sql.grading import check_gold
from envs.tasksets import task_id
from envs.types import Split, Task
from tools.types import Message

ENV_ID = "sql-v1"
MAX_KNOWLEDGE_CHARS = 6000
SYSTEM = (
    "Answer a question about a SQLite database with one SELECT statement. Look at the tables with list_tables and "
    "describe, try queries with run_sql, then call submit once. Your query must give exactly the columns asked for."
)


def question_task(
    databases: Databases,
    file: str,
    *,
    question: str,
    knowledge: str,
    answer: Mapping[str, Any],
    split: Split,
    time_s: float,
    metadata: Mapping[str, Any],
    field: str,
) -> Task:
    """The task of a question about the database `file`; `field` is where the gold stands.

    Raises:
        BadRow: the database cannot be read, or the gold fails on one of its databases.
    """
    schema = databases.schema(file, "db_id")
    knowledge = knowledge.strip()[:MAX_KNOWLEDGE_CHARS]
    content = question.strip() + (f"\n\nExternal knowledge: {knowledge}" if knowledge else "")
    prompt: tuple[Message, ...] = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": content},
    )
    data = {"database": {"folder": databases.folder, "file": file}, "schema": schema, "time_s": time_s}
    run_gold(answer, databases, file, time_s, field)
    return Task(
        # Not the folder: the same question has the same name on another machine.
        id=task_id(ENV_ID, prompt, {"file": file, **metadata}, answer.get("sql")),
        env=ENV_ID,
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        metadata=metadata,
    )


def run_gold(answer: Mapping[str, Any], databases: Databases, file: str, time_s: float, field: str) -> None:
    """Run a gold on its databases.

    Raises:
        BadRow: it fails, or takes longer than the task's queries may.
    """
    try:
        read = read_answer(answer, time_s)
        if not read.results:
            check_gold(read, [databases.world(file), *read.siblings])
    except TaskError as error:
        raise BadRow(field, str(error)) from error

"""What an environment class says without any episode: its tasks, its policies, how it reads a user's files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from envs.formats import Format, read_tasks
from envs.policies import PolicySpec
from envs.snapshots import canonical_json
from envs.taskrows import TaskFile
from envs.types import Split, Task


class Sources:
    """The class methods of `Env`; each has a default that suits an environment without files of its own."""

    id: ClassVar[str] = ""
    """Versioned id, such as `sql-v1`."""
    levels: ClassVar[tuple[int, ...]] = ()
    """Levels of difficulty, easiest first, for `tasks(..., level=...)`; the checker tries whether they are real."""
    formats: ClassVar[Mapping[str, Format]] = {}
    """Files of the field that `read_tasks` knows beside this project's own JSONL."""

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """`n` tasks of a split, a pure function of the arguments; no task is in two splits."""
        raise NotImplementedError(
            f"{cls.__name__} has no task source: define tasks(split, n, seed) or pass options={{'task': ...}}"
        )

    @classmethod
    def read_tasks(cls, path: str | os.PathLike[str], *, format: str = "", split: Split = "test") -> TaskFile:
        """The tasks of a file or folder on disk; each bad row is reported, the others are loaded.

        `format` is a key of `formats` or "agent-rl"; empty recognises it by content. `split` is given to
        tasks whose file names none.

        Raises:
            OSError: the file cannot be read at all.
            ValueError: an unknown or unrecognised format.
        """
        return read_tasks(path, cls.id or cls.__name__, cls.formats, format=format, split=split)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """The scripted policies of this environment by name; the checker wants gold, noop and attacks."""
        return {}

    @classmethod
    def trivial_policies(cls, tasks: Sequence[Task]) -> dict[str, PolicySpec]:
        """Policies of kind `trivial` for these tasks: answers that nobody should be paid for.

        `envs.policies.trivial` builds the usual ones. The checker tries them on a user's own tasks.
        """
        return {}

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """What no two splits may share, by name: the world (data and seed); without data, the prompt."""
        if task.data:
            return {"world": canonical_json([dict(task.data), task.seed])}
        return {"prompt": canonical_json(list(task.prompt))}

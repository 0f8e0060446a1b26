"""Tasks on disk (JSONL), ids from content, splits and seeds that never overlap."""

from __future__ import annotations

import hashlib
import os
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from envs.snapshots import canonical_json
from envs.taskrows import MAX_LINE_BYTES, RowError, TaskFile, read_rows, task_row
from envs.types import Split, Task
from tools.types import Message

__all__ = [
    "RowError",
    "TaskFile",
    "by_split",
    "generate",
    "load_jsonl",
    "save_jsonl",
    "split_of",
    "task_id",
    "world_seeds",
]

_DRAWS = 100
SPLITS: tuple[Split, ...] = get_args(Split)


def task_id(env: str, prompt: Sequence[Message], data: Mapping[str, Any], answer: Any) -> str:
    """Name a task by its content: 16 hex digits, the same on every machine.

    Raises:
        TypeError: prompt, data or answer hold something that is not JSON.
    """
    text = canonical_json({"env": env, "prompt": list(prompt), "data": dict(data), "answer": answer})
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def load_jsonl(
    path: str | os.PathLike[str], env: str | None = None, *, max_line_bytes: int = MAX_LINE_BYTES
) -> TaskFile:
    """Read tasks from a JSONL file (gzip by suffix); each bad row is reported, the others are loaded.

    A row is an object with `prompt` (text or messages) and optionally `data`, `answer`, `split`, `seed`,
    `metadata`, `id` and `env`; `env` here is the default for rows without one.

    Raises:
        OSError: the file cannot be read at all.
    """
    return read_rows(Path(path), env, max_line_bytes, task_id)


def save_jsonl(path: str | os.PathLike[str], tasks: Sequence[Task]) -> None:
    """Write tasks, answers included, for `load_jsonl` to read back; the file is replaced atomically."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for task in tasks:
                file.write(canonical_json(task_row(task)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def by_split(tasks: Sequence[Task]) -> dict[Split, list[Task]]:
    """The tasks of each split, in order; every split is present."""
    return {split: [t for t in tasks if t.split == split] for split in SPLITS}


def split_of(key: str, *, validation: float = 0.1, test: float = 0.1) -> Split:
    """Assign a split by hashing `key` (a task id, a database name): stable when tasks are added.

    Raises:
        ValueError: the shares are negative or leave nothing to train on.
    """
    if validation < 0 or test < 0 or validation + test >= 1:
        raise ValueError(f"validation and test are shares whose sum is below 1, got {validation} and {test}")
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8, person=b"split").digest()
    point = int.from_bytes(digest, "big") / 2**64
    if point < test:
        return "test"
    return "validation" if point < test + validation else "train"


Build = Callable[[random.Random], tuple[str, Mapping[str, Any], Any]]
"""From dice to a prompt, the world's data and the answer; the same dice give the same."""


def generate(env: str, split: Split, n: int, seed: int, build: Build) -> list[Task]:
    """`n` different tasks of a split, each built from a seed of its own; the answer is kept apart for the grader.

    A task belongs to the split that its content hashes to, so that no two splits share one, however small the world.

    Raises:
        ValueError: `build` has too few different tasks.
    """
    made: dict[str, Task] = {}
    draws = _DRAWS * max(n, 10)
    for world_seed in world_seeds(split, draws, seed):
        if len(made) == n:
            break
        text, data, answer = build(random.Random(world_seed))
        prompt: tuple[Message, ...] = ({"role": "user", "content": text},)
        id = task_id(env, prompt, data, answer)
        if split_of(id) == split and id not in made:
            made[id] = Task(
                id=id, env=env, prompt=prompt, data=data, answer=answer, split=split, seed=world_seed
            )
    if len(made) < n:
        raise ValueError(
            f"{draws} draws gave {len(made)} different tasks of split {split}, not {n}: draw from more"
        )
    return list(made.values())


def world_seeds(split: Split, n: int, seed: int = 0) -> list[int]:
    """`n` different seeds for generated worlds; seeds of two splits never meet, whatever `seed` is.

    Fewer seeds are a prefix of more.

    Raises:
        ValueError: an unknown split, or a negative number.
    """
    if split not in SPLITS:
        raise ValueError(f"a split is one of {', '.join(SPLITS)}, got {split!r}")
    if n < 0:
        raise ValueError(f"the number of seeds is not negative, got {n}")
    residue, found, counter = SPLITS.index(split), dict[int, None](), 0
    while len(found) < n:
        digest = hashlib.blake2b(f"{seed}:{counter}".encode(), digest_size=6).digest()
        found[int.from_bytes(digest, "big") * len(SPLITS) + residue] = None
        counter += 1
    return list(found)

"""What train and held-out must not share: databases by content, and prompts that differ in numbers only."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envs.errors import TaskError
from envs.sql.answers import read_answer
from envs.sql.worldspec import read_world
from envs.types import Task


def split_keys(task: Task) -> Mapping[str, str]:
    """Keys by name: `world`, `sibling 0` and so on, `prompt`.

    The words in quotes stay in the masked prompt: every random word belongs to one split.
    """
    spoken = " ".join(message["content"] for message in task.prompt if message["role"] != "system")
    keys = {"prompt": re.sub(r"\d+", "0", spoken)}
    try:
        worlds = [read_world(task.data), *read_answer(task.answer).siblings]
    except TaskError:  # a broken task shares nothing but its prompt
        return keys
    return {**keys, **{f"world {number}": world.key for number, world in enumerate(worlds)}}

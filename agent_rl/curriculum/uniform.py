"""Every task equally often: one shuffled pass after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agent_rl.curriculum.config import CurriculumConfig
from agent_rl.types.credits import Credits
from agent_rl.types.forest import Forest
from agent_rl.types.seams import TaskRequest
from envs.types import Task


class Uniform:
    """Walks through shuffled passes over the tasks; the cursor is all its state."""

    def __init__(self, config: CurriculumConfig, tasks: Sequence[Task], seed: int) -> None:
        del config
        if not tasks:
            raise ValueError("a curriculum needs at least one task; the taskset is empty")
        self.tasks = tuple(tasks)
        self.seed = seed
        self.cursor = 0

    def sample(self, step: int, n: int) -> list[TaskRequest]:
        """The next `n` tasks; a pass ends before any task comes twice."""
        del step
        chosen = [self._at(self.cursor + i) for i in range(n)]
        self.cursor += n
        return [TaskRequest(task=task) for task in chosen]

    def _at(self, cursor: int) -> Task:
        lap, index = divmod(cursor, len(self.tasks))
        order = np.random.default_rng((self.seed, lap)).permutation(len(self.tasks))
        return self.tasks[int(order[index])]

    def update(self, forest: Forest, credits: Credits) -> None:
        """Learns nothing."""

    def filter(self, forest: Forest) -> list[str]:
        """Every group."""
        return list(forest.groups())

    def state(self) -> dict[str, Any]:
        """The cursor."""
        return {"cursor": self.cursor}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the cursor."""
        self.cursor = int(state["cursor"])

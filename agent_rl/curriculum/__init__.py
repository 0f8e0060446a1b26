"""Which tasks, and which groups are worth training on: one rule a file."""

from __future__ import annotations

from collections.abc import Sequence

from agent_rl.curriculum.config import CurriculumConfig
from agent_rl.curriculum.dynamic_filter import DynamicFilter
from agent_rl.curriculum.uniform import Uniform
from agent_rl.types.names import resolve
from agent_rl.types.seams import Curriculum
from envs.types import Task

CURRICULA = {"uniform": Uniform, "dynamic_filter": DynamicFilter}


def make(config: CurriculumConfig, tasks: Sequence[Task], seed: int) -> Curriculum:
    """The curriculum that `config.name` names, over these tasks."""
    curriculum: Curriculum = resolve("curriculum.name", config.name, CURRICULA)(config, tasks, seed)
    return curriculum


__all__ = ["CURRICULA", "CurriculumConfig", "DynamicFilter", "Uniform", "make"]

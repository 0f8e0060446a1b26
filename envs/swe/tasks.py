"""The task source of `swe-v1`: generated repositories by level."""

from __future__ import annotations

from envs.swe.generated.world import LEVELS, make_task
from envs.tasksets import world_seeds
from envs.types import Split, Task


def make_tasks(split: Split, n: int, seed: int, *, level: int | None = None) -> list[Task]:
    """`n` generated tasks of a split.

    Args:
        split: two splits share no package and no function.
        n: how many.
        seed: which ones.
        level: 0 to 3; None goes through all of them in turn.

    Raises:
        ValueError: the level is out of range.
    """
    if level is not None and not 0 <= level < len(LEVELS):
        raise ValueError(f"level is 0 to {len(LEVELS) - 1} or None for all, got {level!r}")
    seeds = world_seeds(split, n, seed)
    return [
        make_task(world_seed, split, level if level is not None else at % len(LEVELS))
        for at, world_seed in enumerate(seeds)
    ]

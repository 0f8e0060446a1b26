"""Independent episodes from the first prompt: the group of GRPO."""

from __future__ import annotations

import numpy as np

from agent_rl.branching.config import BranchingConfig
from agent_rl.types.forest import Forest
from agent_rl.types.seams import Branch


class AtRoot:
    """Starts every episode of the group at its root."""

    snapshots = False

    def __init__(self, config: BranchingConfig) -> None:
        del config

    def next(self, forest: Forest, budget: int, rng: np.random.Generator) -> list[Branch]:
        """The whole budget at the root, once."""
        del rng
        if forest.episodes or budget <= 0:
            return []
        root = next(n for n in forest.nodes.values() if n.parent is None)
        return [Branch(root.id, len(root), budget)]

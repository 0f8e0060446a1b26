"""Which node to continue next: one rule a file."""

from __future__ import annotations

from agent_rl.branching.at_root import AtRoot
from agent_rl.branching.config import BranchingConfig
from agent_rl.branching.random_turn import RandomTurn
from agent_rl.types.names import resolve
from agent_rl.types.seams import Branching

RULES = {"at_root": AtRoot, "random_turn": RandomTurn}


def make(config: BranchingConfig) -> Branching:
    """The branching rule that `config.name` names."""
    rule: Branching = resolve("branching.name", config.name, RULES)(config)
    return rule


__all__ = ["RULES", "AtRoot", "BranchingConfig", "RandomTurn", "make"]

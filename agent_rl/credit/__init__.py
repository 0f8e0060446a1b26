"""Credit: rewards become advantages. One estimator a file, chosen by name or dotted path. NumPy only."""

from __future__ import annotations

from agent_rl.credit.config import CreditConfig
from agent_rl.types.names import resolve
from agent_rl.types.seams import Estimator

NAMES = {
    "group": "agent_rl.credit.group:Group",
    "anchor": "agent_rl.credit.anchor:Anchor",
    "tree": "agent_rl.credit.tree:Tree",
    "demonstration": "agent_rl.credit.demonstration:Demonstration",
}
"""One line per estimator."""


def make(config: CreditConfig) -> Estimator:
    """The estimator that `config.name` names: a key of `NAMES`, or `package.module:Class` given the config.

    Raises:
        ValueError: the name is neither.
    """
    estimator: Estimator = resolve("credit.name", config.name, NAMES)(config)
    return estimator


__all__ = ["NAMES", "CreditConfig", "make"]

"""Credit: rewards become advantages. One estimator a file, chosen by name or dotted path. NumPy only."""

from __future__ import annotations

from importlib import import_module

from agent_rl.credit.config import CreditConfig
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
    target = NAMES.get(config.name, config.name)
    module, colon, attribute = target.partition(":")
    if not colon:
        raise ValueError(
            f"credit.name is one of {', '.join(NAMES)} or a dotted path like my_package.module:Class, "
            f"but it is {config.name!r}"
        )
    estimator: Estimator = getattr(import_module(module), attribute)(config)
    return estimator


__all__ = ["NAMES", "CreditConfig", "make"]

"""Policy losses: one a file, chosen by name or dotted path. Only `make` loads torch."""

from __future__ import annotations

from importlib import import_module

from agent_rl.losses.config import LossConfig
from agent_rl.types.seams import PolicyLoss

NAMES = {
    "clipped": "agent_rl.losses.clipped:Clipped",
    "sequence": "agent_rl.losses.sequence:SequenceClipped",
    "supervised": "agent_rl.losses.supervised:Supervised",
}
"""One line per loss."""


def make(config: LossConfig) -> PolicyLoss:
    """The loss that `config.name` names: a key of `NAMES`, or `package.module:Class` given the config.

    Raises:
        ValueError: the name is neither.
    """
    target = NAMES.get(config.name, config.name)
    module, colon, attribute = target.partition(":")
    if not colon:
        raise ValueError(
            f"loss.name is one of {', '.join(NAMES)} or a dotted path like my_package.module:Class, "
            f"but it is {config.name!r}"
        )
    loss: PolicyLoss = getattr(import_module(module), attribute)(config)
    return loss


__all__ = ["NAMES", "LossConfig", "make"]

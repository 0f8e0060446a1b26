"""Policy losses: one a file, chosen by name or dotted path. Only `make` loads torch."""

from __future__ import annotations

from agent_rl.losses.config import LossConfig
from agent_rl.types.names import resolve
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
    loss: PolicyLoss = resolve("loss.name", config.name, NAMES)(config)
    return loss


__all__ = ["NAMES", "LossConfig", "make"]

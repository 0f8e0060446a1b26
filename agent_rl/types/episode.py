"""Episode: one attempt at one task, as turns in execution order and one leaf per chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from envs.types import Fault, RewardComponent, StopReason

Purpose = Literal["train", "value", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One attempt. A context rewrite starts a new chain, and every chain has one leaf."""

    id: str
    task_id: str
    group_id: str
    """Episodes of one group attempt the same task under the same prompt and share a baseline."""
    sample: int
    """Index within the group."""
    purpose: Purpose = "train"
    turns: tuple[str, ...] = ()
    """Turn ids in execution order, discarded ones and those shared with a sibling included."""
    leaves: tuple[str, ...] = ()
    """Last node of each chain, in order. Empty only when a fault came before the first action."""
    thread: str = "main"
    role: str = "agent"
    rewards: tuple[RewardComponent, ...] = ()
    """Components of scope `episode`."""
    terminated: bool = False
    truncated: bool = False
    stop: StopReason | None = None
    fault: Fault | None = None
    exclude_from_loss: bool = False
    exclude_from_baseline: bool = False
    branched_from: str | None = None
    """Id of the episode whose turns this one continues, for a branch."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """JSON values for people and reports, such as `level`; nothing that a stage reads."""

    @property
    def reward(self) -> float:
        """Weighted sum of the valid episode components."""
        return float(sum(c.weight * c.value for c in self.rewards if c.valid))

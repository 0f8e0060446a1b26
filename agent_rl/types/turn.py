"""Turn: one action of the policy and what the world, or the context manager, answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from envs.types import Fault, RewardComponent, StopReason

TurnKind = Literal["env", "context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An action node with its observation. Stored once and shared by every episode that branched after it."""

    id: str
    action: str
    """Id of the action node."""
    observation: str | None = None
    """Id of the observation node; None when the episode ended with the action."""
    kind: TurnKind = "env"
    """`context`: the action was a summary, answered by a context rewrite and not by the environment."""
    rewards: tuple[RewardComponent, ...] = ()
    """Components of scope `turn`."""
    state_key: str = ""
    """Names the state in which the action was taken: the environment's own key, else a hash of the
    observation that the action answered. Equal keys mean equal states (anchor groups)."""
    belief_key: str = ""
    stop: StopReason | None = None
    tool_calls: int = 0
    tool_errors: int = 0
    """Calls, and things that look like calls, that were answered with an error."""
    queue_s: float = 0.0
    run_s: float = 0.0
    fault: Fault | None = None

    @property
    def reward(self) -> float:
        """Weighted sum of the valid turn components."""
        return float(sum(c.weight * c.value for c in self.rewards if c.valid))

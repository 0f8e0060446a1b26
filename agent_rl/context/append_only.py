"""Nothing is ever dropped; the rollout ends the episode with `window` when the next turn would not fit."""

from __future__ import annotations

from agent_rl.context.config import ContextConfig
from agent_rl.types.seams import ContextDecision, ContextView, Keep


class AppendOnly:
    """Keeps every turn."""

    def __init__(self, config: ContextConfig, room: int) -> None:
        del config, room

    def observe(self, view: ContextView) -> ContextDecision:
        """Always keep."""
        del view
        return Keep()

"""SUPO: when the context nears the working length, the policy replaces its history by a summary of its own.

    state + action + observation < L          keep
    otherwise, fewer than S summaries so far  discard the pair, ask for a summary, open a new chain
    otherwise                                 the episode ends, overlong

The summary is an action and is trained; the discarded action is in no chain and trains nothing. Without the
discard the peak would grow by a whole turn. Source: arXiv 2510.06727 (reference A1).
"""

from __future__ import annotations

from agent_rl.context.config import ContextConfig
from agent_rl.types.seams import ContextDecision, ContextView, Keep, Overflow, Rewrite


class Summarize:
    """Rewrites the context at `working_tokens`, at most `max_summaries` times an episode."""

    def __init__(self, config: ContextConfig, room: int) -> None:
        self.working_tokens = config.working_tokens or int(0.95 * room)
        self.max_summaries = config.max_summaries
        self.instruction = config.instruction
        if self.working_tokens > room:
            raise ValueError(
                "context.working_tokens must leave room for an action in the engine's window: "
                f"{self.working_tokens} > {room}; lower it or raise engine.window"
            )

    def observe(self, view: ContextView) -> ContextDecision:
        """Keep while the turn fits the working length."""
        if view.state_tokens + view.action_tokens + view.observation_tokens < self.working_tokens:
            return Keep()
        if view.rewrites >= self.max_summaries:
            return Overflow("max_summaries")
        return Rewrite(
            instruction={"role": "user", "content": self.instruction}, prefix=view.prompt, discard_last=True
        )

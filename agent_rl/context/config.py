"""Settings of the context manager."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ContextConfig(BaseModel):
    """What the model sees of its own past."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "append_only"
    """`append_only`, `summarize`, or `package.module:Class`."""
    working_tokens: int = Field(default=0, ge=0)
    """Working length L in tokens for `summarize`; 0 means 95 % of what the window leaves beside an action."""
    max_summaries: int = Field(default=3, ge=0)
    instruction: str = "Summarise what you have learnt so far; the conversation will be replaced by it."
    """What asks the policy for a summary."""

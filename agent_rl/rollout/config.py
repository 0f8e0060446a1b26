"""Settings of rollouts: how actions are sampled, how long an episode may be, what exclusion means."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from envs.types import StopReason


class RolloutConfig(BaseModel):
    """How episodes are collected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_new_tokens: int = Field(default=128, ge=1)
    """Most tokens of one action; an action cut by it ends the episode truncated."""
    temperature: float = Field(default=1.0, gt=0)
    """Training samples by temperature alone, and the learner divides by it."""
    concurrency: int = Field(default=64, ge=1)
    """Live episodes; more wait. Ignored in deterministic mode, which keeps all of them live."""
    env_threads: int = Field(default=8, ge=1)
    env_timeout_s: float = Field(default=60.0, gt=0)
    """Deadline of one reset, step, snapshot or restore. Afterwards the environment is interrupted, closed
    and never used again."""
    retries: int = Field(default=1, ge=0)
    """Fresh attempts after a retryable fault."""
    exclude_from_loss: tuple[StopReason, ...] = ("fault", "cancelled", "deadline", "max_summaries")
    exclude_from_baseline: tuple[StopReason, ...] = ("fault", "cancelled", "deadline")

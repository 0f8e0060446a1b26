"""Settings of the training loop itself."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class WarmStartConfig(BaseModel):
    """Supervised steps on a scripted policy's demonstrations before reinforcement learning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str = "gold"
    """Name of one of the environment's policies."""
    steps: int = Field(default=0, ge=0)
    """0 skips the warm start."""
    demonstrations: int = Field(default=256, ge=1)
    """Distinct tasks that are demonstrated, disjoint from the tasks of reinforcement learning."""
    batch_size: int = Field(default=16, ge=1)
    """Demonstrations an optimiser step."""
    learning_rate: float = Field(default=1e-3, gt=0)


class TrainerConfig(BaseModel):
    """How long to train and what to keep."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=20, ge=0)
    groups_per_step: int = Field(default=8, ge=1)
    group_size: int = Field(default=8, ge=1)
    max_refills: int = Field(default=3, ge=0)
    """Further collections a step while the curriculum's filter leaves fewer groups than asked for."""
    eval_every: int = Field(default=0, ge=0)
    """Steps between evaluations on held-out tasks; 0 evaluates before the first and after the last step only."""
    eval_samples: int = Field(default=1, ge=1)
    eval_temperature: float = Field(default=1.0, ge=0)
    """1 evaluates the distribution that is trained; 0 is greedy."""
    checkpoint_every: int = Field(default=1, ge=1)
    keep_checkpoints: int = Field(default=2, ge=1)

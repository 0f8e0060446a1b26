"""Configuration of the learner."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class LearnerConfig(BaseModel):
    """Optimiser, memory and precision."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(1e-5, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    warmup_steps: int = Field(0, ge=0)
    """Steps over which the learning rate rises linearly to its full value."""
    total_steps: int = Field(0, ge=0)
    """Steps over which it falls linearly to 0 afterwards; 0 keeps it constant."""
    token_budget: int = Field(4096, ge=1)
    """Tokens of one forward and backward pass; gradients of a batch are accumulated over its packs."""
    dtype: Literal["float32", "float64", "bfloat16"] = "float32"
    """Of the computation. Weights are float32 even with `bfloat16`, which computes under autocast."""
    passes: int = Field(1, ge=1)
    """How often `update` goes over the same credits."""
    mini_batches: int = Field(1, ge=1)
    """Optimiser steps that `update` makes of one pass."""

"""Settings of the branching rule."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class BranchingConfig(BaseModel):
    """How the episodes of a group grow into a tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "at_root"
    """`at_root`, `random_turn`, or `package.module:Class`."""
    trees: int = Field(default=2, ge=1)
    """`random_turn`: trees a group starts with (m)."""
    rounds: int = Field(default=1, ge=1)
    """`random_turn`: rounds of expansion (L)."""
    expansions: int = Field(default=2, ge=1)
    """`random_turn`: turns expanded a tree and round (n)."""

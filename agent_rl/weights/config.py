"""Settings of weight publishing."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class WeightsConfig(BaseModel):
    """How weights reach the engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "memory"
    """`memory`, `disk`, or a dotted path `package.module:Class`."""
    keep: int = Field(default=2, ge=1)
    """Versions that `disk` leaves in its folder."""

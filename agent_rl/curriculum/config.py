"""Settings of the curriculum."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class CurriculumConfig(BaseModel):
    """Which tasks are collected and which groups are trained on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "uniform"
    """`uniform`, `dynamic_filter`, or `package.module:Class`."""

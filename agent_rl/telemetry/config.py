"""Settings of telemetry."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class TelemetryConfig(BaseModel):
    """Which sinks record the metrics."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sinks: tuple[str, ...] = ("console", "jsonl")
    """`console`, `jsonl`, or `package.module:function` that takes nothing and returns a sink."""

"""Settings of the transformers engine."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class EngineConfig(BaseModel):
    """How much the transformers engine holds, and what it computes besides the tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_slots: int = Field(default=64, ge=1)
    """Sequences held in the cache, running and remembered ones together; more requests than this wait."""
    window: int = Field(default=1024, ge=2)
    """Most tokens of prefix and completion together."""
    prefill_chunk: int = Field(default=512, ge=1)
    """Most prefix tokens computed in one forward pass; running sequences decode in the same pass."""
    entropies: bool = False
    """Whether completions carry the entropy of every sampled distribution."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads of torch, for the whole process; `None` leaves them as they are."""

"""Settings of rendering."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class RenderingConfig(BaseModel):
    """How messages become tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_format: str = "hermes"
    """How the model writes tool calls: `hermes`, `pythonic`, or `package.module:Class`."""
    history: Literal["keep", "template"] = "keep"
    """`keep` appends to the tokens as sampled, thinking included; `template` lets the chat template rewrite
    earlier turns, which opens a new chain whenever it does."""

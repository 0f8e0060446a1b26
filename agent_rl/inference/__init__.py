"""Inference: engines that sample tokens after a prefix, members of the seam `Engine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_rl.inference.config import EngineConfig
from agent_rl.inference.scripted_engine import ScriptedEngine

if TYPE_CHECKING:
    from agent_rl.inference.transformers_engine import TransformersEngine

__all__ = ["EngineConfig", "ScriptedEngine", "TransformersEngine"]


def __getattr__(name: str) -> Any:
    """Import the transformers engine on first use: the scripted one needs no torch."""
    if name != "TransformersEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_rl.inference.transformers_engine import TransformersEngine

    return TransformersEngine

"""Publish by handing the tensors over: learner and engine in one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_rl.types.seams import Engine
from agent_rl.weights.config import WeightsConfig


class MemoryPublisher:
    """A `WeightPublisher` that copies the learner's tensors straight into the engine's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def from_config(cls, config: WeightsConfig, engine: Engine, folder: Path | None) -> MemoryPublisher:
        """Build one; nothing is configurable and no folder is used."""
        return cls(engine)

    async def publish(self, policy: str, version: int, tensors: Mapping[str, Any]) -> int:
        """Load the tensors into the engine; the learner must not change them before this returns.

        Raises:
            ValueError: the engine refused them; it serves what it had.
        """
        await self._engine.load_weights(policy, version, tensors)
        return version

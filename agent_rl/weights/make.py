"""From a name to a publisher."""

from __future__ import annotations

from pathlib import Path

from agent_rl.types.names import resolve
from agent_rl.types.seams import Engine, WeightPublisher
from agent_rl.weights.config import WeightsConfig

PUBLISHERS = {
    "memory": "agent_rl.weights.memory:MemoryPublisher",
    "disk": "agent_rl.weights.disk:DiskPublisher",
}
"""Name to dotted path. A class has `from_config(config, engine, folder)`."""


def make(config: WeightsConfig, engine: Engine, folder: Path | None = None) -> WeightPublisher:
    """Build the publisher that the configuration names.

    Args:
        config: name and settings.
        engine: receives the weights.
        folder: where `disk` writes.

    Raises:
        ValueError: the name is neither known nor a dotted path, or `disk` has no folder.
    """
    publisher: WeightPublisher = resolve("weights.name", config.name, PUBLISHERS).from_config(
        config, engine, folder
    )
    return publisher

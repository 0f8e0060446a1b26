"""From a name to a publisher."""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path

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
    target = PUBLISHERS.get(config.name, config.name)
    if ":" not in target:
        near = difflib.get_close_matches(config.name, PUBLISHERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"weights.name is one of {sorted(PUBLISHERS)} or 'package.module:Class'; "
            f"it is {config.name!r}{hint}"
        )
    module, name = target.split(":", 1)
    publisher: WeightPublisher = getattr(importlib.import_module(module), name).from_config(
        config, engine, folder
    )
    return publisher

"""The synchronous loop over the stages. Importing the package alone loads no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agent_rl.trainer.config import TrainerConfig, WarmStartConfig

if TYPE_CHECKING:
    from agent_rl.trainer.loop import judge, train
    from agent_rl.trainer.parts import Parts, Progress, Silent

_LATER = {"judge": "loop", "train": "loop", "Parts": "parts", "Progress": "parts", "Silent": "parts"}


def __getattr__(name: str) -> Any:
    # Configurations are read without torch, so that a mistake in one is told at once.
    if name in _LATER:
        return getattr(import_module(f"agent_rl.trainer.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Parts", "Progress", "Silent", "TrainerConfig", "WarmStartConfig", "judge", "train"]

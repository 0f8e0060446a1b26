"""The synchronous loop over the stages."""

from __future__ import annotations

from agent_rl.trainer.config import TrainerConfig, WarmStartConfig
from agent_rl.trainer.loop import judge, train
from agent_rl.trainer.parts import Parts, Progress, Silent

__all__ = ["Parts", "Progress", "Silent", "TrainerConfig", "WarmStartConfig", "judge", "train"]

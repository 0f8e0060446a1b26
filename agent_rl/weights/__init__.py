"""Weights: carrying what the learner learned to the engine. Members stand behind `WeightPublisher`."""

from __future__ import annotations

from agent_rl.weights.config import WeightsConfig
from agent_rl.weights.make import PUBLISHERS, make
from agent_rl.weights.memory import MemoryPublisher

__all__ = ["PUBLISHERS", "MemoryPublisher", "WeightsConfig", "make"]

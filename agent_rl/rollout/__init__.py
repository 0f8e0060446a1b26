"""From tasks to a forest: one turn (`policy`), one episode (`episode`), one group (`grow`), many (`collector`)."""

from __future__ import annotations

from agent_rl.rollout.collector import Collection, Collector
from agent_rl.rollout.config import RolloutConfig
from agent_rl.rollout.policy import Action, Actor, EngineActor, PolicyActor

__all__ = ["Action", "Actor", "Collection", "Collector", "EngineActor", "PolicyActor", "RolloutConfig"]

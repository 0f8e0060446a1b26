"""Nouns as rows, and numbers that every database can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from agent_rl.types import Episode, Forest, Metrics


def episode_row(episode: Episode, forest: Forest) -> dict[str, Any]:
    """One row of the table `episodes`, without run and step."""
    turns = [forest.turns[t] for t in episode.turns]
    return {
        "id": episode.id,
        "group_id": episode.group_id,
        "sample": episode.sample,
        "task_id": episode.task_id,
        "env": str(episode.metadata.get("env", "")),
        "purpose": episode.purpose,
        "reward": episode.reward,
        "turn_reward": float(sum(t.reward for t in turns)),
        "stop": episode.stop,
        "fault": None if episode.fault is None else episode.fault.kind,
        "turns": len(turns),
        "tokens": sum(len(forest.nodes[t.action]) for t in turns),
        "duration_s": float(sum(t.queue_s + t.run_s for t in turns)),
    }


def stored_metrics(metrics: Metrics) -> dict[str, float | str]:
    """Metrics as JSON that PostgreSQL accepts: what is not finite becomes the text "nan", "inf", "-inf"."""
    return {k: float(v) if math.isfinite(v) else str(float(v)) for k, v in metrics.items()}


def metric_values(stored: Mapping[str, float | str]) -> dict[str, float]:
    """What `stored_metrics` was given."""
    return {name: float(value) for name, value in stored.items()}


def finite(value: Any) -> Any:
    """A JSON value in which numbers that are not finite became None."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

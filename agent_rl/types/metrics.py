"""Metrics: flat names to numbers, `stage/name`, so that every sink writes the same record."""

from __future__ import annotations

from collections.abc import Mapping

Metrics = Mapping[str, float]


def prefixed(stage: str, metrics: Metrics) -> dict[str, float]:
    """The same metrics under `stage/`."""
    return {f"{stage}/{name}": float(value) for name, value in metrics.items()}

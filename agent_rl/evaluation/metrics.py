"""Numbers with error bars: success with an interval, pass@k, and faults kept apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Z95 = 1.959963984540054


def wilson(successes: int, n: int) -> tuple[float, float]:
    """95 % Wilson score interval of a proportion; (0, 1) without observations. Source: Wilson (1927)."""
    if n == 0:
        return 0.0, 1.0
    p, z2 = successes / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def clustered_interval(per_task: Sequence[float], *, resamples: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over tasks; samples of one task are not independent.

    Args:
        per_task: success rate of each task.
        resamples: bootstrap resamples, drawn with a fixed seed so that a report can be repeated.
    """
    if not per_task:
        return 0.0, 1.0
    rates = np.asarray(per_task, np.float64)
    draws = np.random.default_rng(0).integers(0, len(rates), (resamples, len(rates)))
    low, high = np.quantile(rates[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Chance that at least one of `k` samples succeeds, unbiased from `n` samples.

    Source: arXiv 2107.03374.

    Raises:
        ValueError: k exceeds n.
    """
    if k > n:
        raise ValueError(f"pass@k needs k <= samples: k = {k}, samples = {n}; evaluate more samples a task")
    if n - successes < k:
        return 1.0
    return 1.0 - math.prod((n - successes - i) / (n - i) for i in range(k))

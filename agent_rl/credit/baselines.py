"""Statistics that every estimator shares: a return relative to those of comparable episodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from agent_rl.credit.config import CreditConfig
from agent_rl.types.node import Float64

EPSILON = 1e-6


def normalise(values: Iterable[float], votes: Iterable[bool], config: CreditConfig) -> Float64:
    """Advantage of each value within one set: minus a baseline, divided by a scale.

    Args:
        values: [n] returns.
        votes: [n] False leaves a value out of the statistics; it still gets an advantage.
        config: `baseline` and `scale`.

    Returns:
        [n] advantages; all 0 when fewer than two values vote or the voters do not differ: such a set says
        nothing about which action was better.
    """
    x = np.asarray(list(values), np.float64)
    voting = np.asarray(list(votes), bool)
    voters = x[voting]
    if len(voters) < 2 or np.std(voters, ddof=1) < EPSILON:
        return np.zeros_like(x)
    advantages: Float64 = x - voters.mean()
    if config.baseline == "leave_one_out":
        # R - mean(others) = n/(n-1) * (R - mean); a value outside the statistics has only others.
        advantages = np.where(voting, advantages * len(voters) / (len(voters) - 1), advantages)
    if config.scale == "std":
        advantages = advantages / (np.std(voters, ddof=1) + EPSILON)
    return advantages


def normalise_within(
    keys: Sequence[Hashable], values: Sequence[float], votes: Sequence[bool], config: CreditConfig
) -> Float64:
    """`normalise` within each set of equal keys, [n]."""
    sets: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        sets.setdefault(key, []).append(i)
    advantages = np.zeros(len(values))
    for members in sets.values():
        advantages[members] = normalise([values[i] for i in members], [votes[i] for i in members], config)
    return advantages

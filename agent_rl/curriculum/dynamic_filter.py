"""DAPO's dynamic sampling: groups in which all episodes earned the same teach nothing and are left out.

The trainer asks for more tasks while too few groups remain. Groups of one episode are kept: their estimator does
not compare within the group. Source: arXiv 2503.14476 (reference D4).
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_rl.curriculum.uniform import Uniform
from agent_rl.types.episode import Episode
from agent_rl.types.forest import Forest


class DynamicFilter(Uniform):
    """Uniform sampling; keeps groups whose returns differ."""

    def filter(self, forest: Forest) -> list[str]:
        """Groups with at least two different returns among the episodes that count in the baseline."""
        return [g for g, episodes in forest.groups().items() if _informative(forest, episodes)]


def _informative(forest: Forest, episodes: Sequence[Episode]) -> bool:
    counted = [e for e in episodes if not e.exclude_from_baseline]
    returns = {round(e.reward + sum(forest.turn_rewards(e)), 9) for e in counted}
    return len(episodes) == 1 or len(returns) > 1

"""GRPO, Dr.GRPO and RLOO: an episode's return relative to its group, given to every token it chose.

GRPO arXiv 2402.03300; Dr.GRPO arXiv 2503.20783; RLOO arXiv 2402.14740. With several chains an episode this is
SUPO's rule (arXiv 2510.06727): statistics over episodes, one advantage for every chain.
"""

from __future__ import annotations

from agent_rl.credit.baselines import normalise_within
from agent_rl.credit.config import CreditConfig
from agent_rl.credit.rows import total_return, training, uniform_rows
from agent_rl.types import AnnotationName, Annotations, Credits, Forest


class Group:
    """One advantage an episode, from the returns of its group."""

    def __init__(self, config: CreditConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Nothing beyond the rewards."""
        return frozenset()

    def credit(self, forest: Forest, annotations: Annotations) -> Credits:
        """Rows for all action tokens of all chains of every train episode that is not excluded."""
        episodes = training(forest)
        advantages = normalise_within(
            [e.group_id for e in episodes],
            [total_return(forest, e) for e in episodes],
            [not e.exclude_from_baseline for e in episodes],
            self._config,
        )
        by_episode = {e.id: float(a) for e, a in zip(episodes, advantages, strict=True)}
        return Credits.of(uniform_rows(forest, by_episode))

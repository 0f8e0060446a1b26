"""Demonstrations: every action token is imitated with advantage 1, for a supervised warm start."""

from __future__ import annotations

from agent_rl.credit.config import CreditConfig
from agent_rl.credit.rows import training, uniform_rows
from agent_rl.types import AnnotationName, Annotations, Credits, Forest


class Demonstration:
    """Advantage 1 for every action token, whatever the reward: choose the episodes before."""

    def __init__(self, config: CreditConfig | None = None) -> None:
        """No setting matters here; the parameter lets `credit.make` build every estimator alike."""

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Nothing."""
        return frozenset()

    def credit(self, forest: Forest, annotations: Annotations) -> Credits:
        """Rows for all action tokens, demonstrated or sampled, of every train episode not excluded."""
        return Credits.of(uniform_rows(forest, {e.id: 1.0 for e in training(forest)}))

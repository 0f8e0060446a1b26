"""Supervised loss: negative log-likelihood of the credited tokens."""

from __future__ import annotations

from torch import Tensor

from agent_rl.losses.aggregate import aggregate
from agent_rl.losses.config import LossConfig
from agent_rl.types import AnnotationName, Metrics
from agent_rl.types.seams import LossInputs


class Supervised:
    """-A log p: with advantage 1 (`credit.demonstration`) plain imitation. No ratio, clip or correction."""

    def __init__(self, config: LossConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Nothing."""
        return frozenset()

    def loss(self, current_logprobs: Tensor, inputs: LossInputs) -> tuple[Tensor, Metrics]:
        """This pack's share of the loss; the metric is the sum of negative log-likelihoods."""
        losses = -inputs.advantages * current_logprobs
        metrics = {"nll": float(-current_logprobs.detach().sum())}
        return aggregate(losses, inputs, self._config.aggregation, self._config.max_length), metrics

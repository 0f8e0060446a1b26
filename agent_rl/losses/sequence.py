"""GSPO (arXiv 2507.18071): one ratio per sequence, the geometric mean of its token ratios."""

from __future__ import annotations

import torch
from torch import Tensor

from agent_rl.losses.config import LossConfig
from agent_rl.losses.kl import LOG_RATIO_LIMIT
from agent_rl.losses.rollout_correction import sequence_sum, usable
from agent_rl.losses.surrogate import finish, needs
from agent_rl.types import AnnotationName, Metrics
from agent_rl.types.seams import LossInputs


class SequenceClipped:
    """Clips the ratio of a chain's whole path, ancestors shared with other chains included.

    Each token's ratio is `sg(s) * exp(logp - sg(logp))`: the value of the sequence's ratio s, and the
    gradient of its own log-probability. This is GSPO-token, and GSPO where a chain's advantages are equal.
    """

    def __init__(self, config: LossConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Proximal log-probabilities for a correction, reference ones for a KL term."""
        return needs(self._config)

    def loss(self, current_logprobs: Tensor, inputs: LossInputs) -> tuple[Tensor, Metrics]:
        """This pack's share of the loss, and of the metrics as sums over tokens."""
        use = usable(inputs)
        with torch.no_grad():
            gap = torch.where(use, current_logprobs - inputs.proximal_logprobs, 0.0)
            count = sequence_sum(use.to(gap.dtype), inputs).clamp(min=1)
            mean = sequence_sum(gap, inputs) / count
            s = mean.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()[inputs.sequence_ids]
            s = torch.where(use, s, 1.0)
        ratio = s * (current_logprobs - current_logprobs.detach()).exp()
        return finish(ratio, current_logprobs, inputs, self._config, use)

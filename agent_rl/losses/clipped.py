"""The clipped policy loss: PPO's token ratio with DAPO's bounds and the dual clip."""

from __future__ import annotations

import torch
from torch import Tensor

from agent_rl.losses.config import LossConfig
from agent_rl.losses.kl import LOG_RATIO_LIMIT
from agent_rl.losses.rollout_correction import usable
from agent_rl.losses.surrogate import finish, needs
from agent_rl.types import AnnotationName, Metrics
from agent_rl.types.seams import LossInputs


class Clipped:
    """Clips the ratio current / proximal of each token, row by row (arXiv 1707.06347, 2503.14476)."""

    def __init__(self, config: LossConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Proximal log-probabilities for a correction, reference ones for a KL term."""
        return needs(self._config)

    def loss(self, current_logprobs: Tensor, inputs: LossInputs) -> tuple[Tensor, Metrics]:
        """This pack's share of the loss, and of the metrics as sums over tokens."""
        use = usable(inputs)
        # Without a usable denominator the token is its own: ratio 1, and masked by its factor.
        proximal = torch.where(use, inputs.proximal_logprobs, current_logprobs.detach())
        ratio = (current_logprobs - proximal).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
        return finish(ratio, current_logprobs, inputs, self._config, use)

"""Rollout correction: the engine samples with slightly other probabilities than the learner computes.

rho = p_learner / p_engine at the same weights. TIS caps it, MIS drops tokens (or sequences) outside a window.
Off-Policy notes: https://fengyao.notion.site/off-policy-rl (TIS); IcePop (MIS).
"""

from __future__ import annotations

import torch
from torch import Tensor

from agent_rl.losses.config import LossConfig
from agent_rl.losses.kl import LOG_RATIO_LIMIT
from agent_rl.types.seams import LossInputs


def usable(inputs: LossInputs) -> Tensor:
    """Tokens with finite sampled and proximal log-probabilities, [M] bool.

    The others (demonstrations, or nan from an engine) have no ratio: they are masked and counted.
    """
    return torch.isfinite(inputs.sampled_logprobs) & torch.isfinite(inputs.proximal_logprobs)


def correction_weights(inputs: LossInputs, config: LossConfig, usable: Tensor) -> Tensor:
    """Factor on each token's loss, [M], without gradient; 0 where a token is not usable.

    At the sequence level rho is the product over the usable tokens of the chain, one factor for all of them.
    """
    kept = usable.to(inputs.advantages.dtype)
    if config.correction == "none":
        return kept
    gap = torch.where(usable, inputs.proximal_logprobs - inputs.sampled_logprobs, 0.0)
    if config.correction_level == "sequence":
        gap = sequence_sum(gap, inputs)[inputs.sequence_ids]
    rho = gap.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    if config.correction == "tis":
        return kept * rho.clamp(max=config.correction_high)
    inside = (rho >= config.correction_low) & (rho <= config.correction_high)
    return kept * torch.where(inside, rho, 0.0)


def sequence_sum(values: Tensor, inputs: LossInputs) -> Tensor:
    """Sum of token values over each sequence of the step, [S]; all tokens of a sequence are in one pack."""
    sums = torch.zeros_like(inputs.sequence_tokens, dtype=values.dtype)
    return sums.index_add(0, inputs.sequence_ids, values)

"""What the ratio losses share: the clipped surrogate, the KL term, the average and the metrics."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from agent_rl.losses.aggregate import aggregate
from agent_rl.losses.config import LossConfig
from agent_rl.losses.kl import LOG_RATIO_LIMIT, kl
from agent_rl.losses.rollout_correction import correction_weights
from agent_rl.types import AnnotationName, Metrics
from agent_rl.types.seams import LossInputs


def needs(config: LossConfig) -> frozenset[AnnotationName]:
    """Annotations that a configuration of a ratio loss reads."""
    names: set[AnnotationName] = set()
    if config.correction != "none":
        names.add("proximal_logprobs")
    if config.kl != "none":
        names.add("reference_logprobs")
    return frozenset(names)


def clipped_surrogate(ratio: Tensor, advantages: Tensor, config: LossConfig) -> tuple[Tensor, Tensor]:
    """Per-token loss max(-A r, -A clip(r)), bounded by -A c for A < 0, and where the clip took effect, [M].

    PPO arXiv 1707.06347; separate bounds from DAPO arXiv 2503.14476; dual clip arXiv 1912.09729.
    """
    plain = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    losses = torch.maximum(plain, clipped)
    active = clipped > plain
    if config.dual_clip:
        bound = -advantages * config.dual_clip
        bounded = (advantages < 0) & (losses > bound)
        losses = torch.where(bounded, bound, losses)
        active = active | bounded
    return losses, active


def finish(
    ratio: Tensor, current: Tensor, inputs: LossInputs, config: LossConfig, usable: Tensor
) -> tuple[Tensor, Metrics]:
    """This pack's share of loss and metrics.

    Args:
        ratio: [M] with gradient; 1 where a token is not usable.
        current: [M] current log-probabilities, with gradient.
        inputs: of the pack.
        config: clip, correction, KL, aggregation.
        usable: [M] bool, tokens that the loss may use.

    Returns:
        The scalar loss, and metrics as sums over tokens: divide by the tokens of the step.
    """
    losses, active = clipped_surrogate(ratio, inputs.advantages, config)
    factors = correction_weights(inputs, config, usable)
    losses = losses * factors
    with torch.no_grad():
        gap = torch.where(usable, current - inputs.proximal_logprobs, 0.0)
        gap = gap.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
        metrics = {
            "clip_fraction": float((active & usable).sum()),
            "ratio": float(torch.where(usable, ratio, 0.0).sum()),
            "approx_kl": float((gap.exp() - 1 - gap).sum()),
            "masked_fraction": float((~usable).sum()),
        }
        if config.correction != "none":
            metrics["correction_weight"] = float(factors.sum())
    if config.kl != "none":
        divergence = _divergence(current, inputs, config.kl, usable)
        losses = losses + config.kl_coefficient * divergence
        metrics["kl"] = float(divergence.detach().sum())
    return aggregate(losses, inputs, config.aggregation, config.max_length), metrics


def _divergence(
    current: Tensor, inputs: LossInputs, how: Literal["k1", "k2", "k3"], usable: Tensor
) -> Tensor:
    """KL per token, [M]; 0 for tokens that were not sampled or have no reference."""
    if inputs.reference_logprobs is None:
        raise ValueError(
            f"a {how} term compares with reference log-probabilities, but the batch has none: "
            "score the forest with `reference_logprobs` first"
        )
    known = usable & torch.isfinite(inputs.reference_logprobs)
    reference = torch.where(known, inputs.reference_logprobs, current.detach())
    return torch.where(known, kl(current, reference, how), 0.0)

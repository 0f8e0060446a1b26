"""Sampling one token for many sequences at once, each with its own generator.

A completion's randomness is a fixed sequence of uniform numbers keyed by its seed alone, one number a token.
Token `i` is the inverse of the cumulative distribution at number `i`, so neither the batch a request ran in
nor the order of requests changes what it samples.

There is no top-p, top-k or penalty: the learner could not divide by what was cut away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from agent_rl.types import Float64


class Sampled(NamedTuple):
    """One token for each of B sequences."""

    token_ids: list[int]
    logprobs: list[float]
    """At the sampling temperature; at temperature 1 where sampling was greedy."""
    entropies: list[float] | None
    """Of the distribution that `logprobs` refers to, in nats."""


def uniforms(seed: tuple[int | str, ...], n: int) -> Float64:
    """Draw the `n` numbers in [0, 1) that belong to `seed`, equal on every machine and in every process.

    The key is a BLAKE2 hash of the seed's text: Python's own `hash` differs between processes.
    """
    digest = hashlib.blake2b(repr(seed).encode(), digest_size=16).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
    return generator.random(n)


def sample(
    logits: torch.Tensor, temperatures: Sequence[float], draws: Sequence[float], *, entropies: bool = False
) -> Sampled:
    """Sample one token from each row.

    Args:
        logits: [B, V], any float type; computed in float32, accumulated in float64.
        temperatures: B numbers; 0 takes the most likely token.
        draws: B numbers in [0, 1), ignored where the temperature is 0.
        entropies: whether to compute the entropy of every row.

    Raises:
        FloatingPointError: a row is not a distribution (the model produced NaN or infinity).
    """
    scale = torch.tensor([t or 1.0 for t in temperatures], dtype=torch.float32, device=logits.device)
    logprobs = torch.log_softmax(logits.float() / scale[:, None], dim=-1)  # [B, V]
    probabilities = logprobs.exp()
    greedy = torch.tensor([t == 0 for t in temperatures], device=logits.device)
    if all(t == 0 for t in temperatures):
        chosen = logprobs.argmax(dim=-1)
    else:
        inverse = _inverse_cdf(probabilities, draws)
        chosen = torch.where(greedy, logprobs.argmax(dim=-1), inverse) if bool(greedy.any()) else inverse
    picked = logprobs.gather(1, chosen[:, None])[:, 0]
    if not bool(torch.isfinite(picked).all()):
        raise FloatingPointError(
            "the model's logits are not a distribution: a log-probability is not finite; "
            "look for NaN in the weights that were last loaded"
        )
    spread = None
    if entropies:
        # 0 * -inf is NaN where a probability underflows; its share of the entropy is 0.
        spread = -(probabilities * logprobs).nan_to_num(nan=0.0).sum(dim=-1)
    return Sampled(chosen.tolist(), picked.tolist(), None if spread is None else spread.tolist())


def _inverse_cdf(probabilities: torch.Tensor, draws: Sequence[float]) -> torch.Tensor:
    cumulative = probabilities.cumsum(dim=-1, dtype=torch.float64)  # [B, V]
    total = cumulative[:, -1:]
    points = torch.tensor(draws, dtype=torch.float64, device=probabilities.device)[:, None] * total
    # Rounding may lift a draw just below 1 to the total, which no token's interval contains.
    points = torch.minimum(points, torch.nextafter(total, torch.zeros_like(total)))
    found = torch.searchsorted(cumulative, points, right=True)[:, 0]
    return found.clamp(max=probabilities.shape[1] - 1)  # only a row of NaN ends beyond; it is reported later

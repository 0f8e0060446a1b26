"""Log-probabilities of the labels of a pack, with the head applied only where something is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from agent_rl.learner.forward import hidden_states
from agent_rl.types import Pack

CHUNK_ELEMENTS = 1 << 26
"""Logits held at once: 256 MiB in float32. More are computed in chunks, and again in the backward pass."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What one forward pass says about the loss tokens of a pack."""

    logprobs: Tensor  # [M], at each token's sampling temperature
    entropy: float
    """Sum over loss tokens of the entropy of their distribution, in nats; 0 where not asked for."""


def score_pack(
    model: Any, pack: Pack, *, entropy: bool = False, chunk_elements: int = CHUNK_ELEMENTS
) -> Scored:
    """Log-probability of every label of a pack under the model, [M], with gradient where enabled.

    Labels that are predicted from one token at one temperature share one row of logits.
    """
    hidden = hidden_states(model, pack.token_ids, pack.positions, pack.subtree_end)
    head = model.get_output_embeddings()
    # Distinct (token, temperature) pairs in order of token, and the pair of each label.
    temperatures, which = np.unique(pack.temperatures, return_inverse=True)
    pairs, pair_of = np.unique(pack.predict_from * len(temperatures) + which, return_inverse=True)
    predict_from, temperature_of = pairs // len(temperatures), temperatures[pairs % len(temperatures)]
    order = np.argsort(pair_of, kind="stable")
    size = max(1, chunk_elements // head.weight.shape[0])
    cuts = np.arange(0, len(pairs), size)
    bounds = np.searchsorted(pair_of[order], np.append(cuts, len(pairs)))
    parts: list[Tensor] = []
    total = 0.0
    for cut, begin, end in zip(cuts.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        labels = order[begin:end]
        rows = _tensor(predict_from[cut : cut + size], hidden)
        arguments = (
            head,
            hidden.index_select(0, rows),
            _tensor(temperature_of[cut : cut + size], hidden),
            _tensor(pair_of[labels] - cut, hidden),
            _tensor(pack.labels[labels], hidden),
            entropy,
        )
        if len(cuts) > 1 and torch.is_grad_enabled():
            logprobs, chunk_entropy = checkpoint(_label_logprobs, *arguments, use_reentrant=False)
        else:
            logprobs, chunk_entropy = _label_logprobs(*arguments)
        parts.append(logprobs)
        total += float(chunk_entropy)
    sorted_logprobs = torch.cat(parts)
    return Scored(sorted_logprobs.index_select(0, _tensor(np.argsort(order), hidden)), total)


def _label_logprobs(
    head: Any, hidden: Tensor, temperatures: Tensor, rows: Tensor, labels: Tensor, entropy: bool
) -> tuple[Tensor, Tensor]:
    """Log-probabilities [m] of `labels` [m] in the distributions `rows` [m], and the sum of entropies."""
    logits = head(hidden)
    if logits.dtype in (torch.bfloat16, torch.float16):
        logits = logits.float()
    logits = logits / temperatures.to(logits.dtype)[:, None]
    normaliser = logits.logsumexp(-1)
    logprobs = logits[rows, labels] - normaliser[rows]
    if not entropy:
        return logprobs, logprobs.new_zeros(())
    with torch.no_grad():
        each = normaliser - (logits.softmax(-1) * logits).sum(-1)
        return logprobs, each[rows].sum()


def _tensor(values: np.ndarray[Any, np.dtype[Any]], like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)

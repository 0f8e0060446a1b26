"""Loss inputs by hand: one entry a token, sequences by number."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from agent_rl.types.seams import LossInputs


def column(values: Sequence[float] | torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float64)


def inputs(
    advantages: Sequence[float],
    *,
    sequences: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    sampled: Sequence[float] | None = None,
    proximal: Sequence[float] | None = None,
    reference: Sequence[float] | None = None,
) -> LossInputs:
    n = len(advantages)
    ids = torch.as_tensor([0] * n if sequences is None else list(sequences), dtype=torch.int64)
    behaviour = column([0.0] * n if sampled is None else sampled)
    counts = torch.bincount(ids) if n else torch.zeros(0, dtype=torch.int64)
    return LossInputs(
        advantages=column(advantages),
        weights=column([1.0] * n if weights is None else weights),
        sampled_logprobs=behaviour,
        proximal_logprobs=behaviour if proximal is None else column(proximal),
        reference_logprobs=None if reference is None else column(reference),
        sequence_ids=ids,
        sequence_tokens=counts,
        tokens=n,
        sequences=int((counts > 0).sum()),
    )

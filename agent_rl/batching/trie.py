"""The prefix trie: all token streams of an optimiser step, each distinct token computed once.

Chains are merged wherever their tokens begin alike, across episodes, groups and branches: what counts is what
the engine saw, not who sampled it. The gradient equals that of the unmerged rows, because a hidden state
depends on the prefix alone, and every loss row keeps its own advantage, log-probabilities and temperature.
"""

from __future__ import annotations

import numpy as np

from agent_rl.batching.layout import Layout, in_trie_order
from agent_rl.batching.sequences import Sequence, collect
from agent_rl.batching.targets import Source, pack
from agent_rl.types import Annotations, Batch, Credits, Forest


def build(
    forest: Forest, credits: Credits, annotations: Annotations, *, policy: str = "main", token_budget: int
) -> Batch:
    """Merge the chains that have rows into tries and cut them into packs of at most `token_budget` tokens.

    Args:
        forest: holds every node on the chains of the rows.
        credits: rows of nodes of other policies are left out.
        annotations: `proximal_logprobs` and `reference_logprobs` are passed on where present.
        policy: whose rows are trained.
        token_budget: tokens of one forward pass. A cut recomputes shared ancestors; a chain is never cut, so
            one longer than the budget is a pack by itself.

    Raises:
        ValueError: a row covers the first token of a root, an observation, a greedy action, or lies off its
            chain; or the budget is below 1.
    """
    return _build(
        collect(forest, credits, policy), Source(forest, credits, annotations), policy, token_budget, True
    )


def unmerged(
    forest: Forest, credits: Credits, annotations: Annotations, *, policy: str = "main", token_budget: int
) -> Batch:
    """The reference for `build`: every chain with rows is a root of its own and nothing is shared."""
    return _build(
        collect(forest, credits, policy), Source(forest, credits, annotations), policy, token_budget, False
    )


def _build(sequences: list[Sequence], source: Source, policy: str, token_budget: int, share: bool) -> Batch:
    if token_budget < 1:
        raise ValueError(
            f"a pack holds at least one token, but token_budget is {token_budget}: use 1024 or more"
        )
    layouts: list[Layout] = []
    for sequence in in_trie_order(sequences) if share else sequences:
        shared = layouts[-1].shared(sequence.token_ids) if layouts else 0
        added = sequence.end - shared
        # A chain that adds nothing (same tokens, other episode) joins even a pack that is over the budget.
        if not layouts or (added and layouts[-1].size + added > token_budget):
            layouts.append(Layout(share))
            shared = 0
        layouts[-1].add(sequence, shared)
    loss_tokens = np.array([s.loss_tokens for s in sequences], np.int64)
    return Batch(
        policy=policy,
        packs=tuple(pack(layout, source) for layout in layouts),
        tokens=int(loss_tokens.sum()),
        sequences=len(sequences),
        sequence_tokens=loss_tokens,
        row_tokens=sum(s.end for s in sequences),
    )

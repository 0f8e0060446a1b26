"""Batch: the prefix trie of a forest, packed. Each distinct token stands once; loss rows index into it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pack:
    """One forward pass: tries laid out in depth-first order, and the loss tokens that read from them.

    Token j is an ancestor of token i (or i itself) exactly when `j <= i < subtree_end[j]`; attention, position
    and packing of several roots all follow from that one array.

    Two answers `7 8` and `7 9` after the prompt `1 2`:

        token_ids    1 2 7 8 9
        positions    0 1 2 3 3
        subtree_end  5 5 5 4 5
        predicts     label 7 from index 1 (twice, once per answer), 8 and 9 from index 2
    """

    token_ids: Int64  # [N]
    positions: Int64  # [N]
    subtree_end: Int64  # [N]

    predict_from: Int64  # [M] index of the token whose hidden state predicts the label
    labels: Int64  # [M]
    advantages: Float32  # [M]
    weights: Float32  # [M]
    temperatures: Float32  # [M]
    sampled_logprobs: Float32  # [M], nan for demonstrations
    proximal_logprobs: Float32 | None  # [M]
    reference_logprobs: Float32 | None  # [M]
    sequences: Int64  # [M] index of the (episode, chain) in the whole batch, < Batch.sequences
    versions: Int64  # [M] -1 for demonstrations

    @property
    def size(self) -> int:
        """Tokens in the forward pass."""
        return int(self.token_ids.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """One optimiser step of one policy. Denominators are global: over all packs, before the trie was built."""

    policy: str
    packs: tuple[Pack, ...]
    tokens: int
    """Loss tokens, one per credit row and position."""
    sequences: int
    sequence_tokens: Int64  # [S] loss tokens of each sequence
    row_tokens: int
    """Tokens of the unmerged rows: what a trainer without the trie would compute."""

    @property
    def trie_tokens(self) -> int:
        """Tokens actually computed, ancestors recomputed by a cut included."""
        return sum(p.size for p in self.packs)

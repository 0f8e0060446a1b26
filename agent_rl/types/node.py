"""Node: an append-only run of tokens in one context, the atom of everything that is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

NodeKind = Literal["prompt", "action", "observation"]
Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """Tokens that followed a prefix of `parent`, never split and never re-tokenised.

    The path from a root to a node is exactly what the engine saw. `at` says how many of the parent's tokens
    precede this node: a child may leave its parent early (a branch inside a turn, a summary instruction that
    replaces the generation prompt).

        prompt  [1 2 3]                 root, kind prompt
          action [4 5]                  at = 3, sampled_logprobs [2]
            observation [6 7 8]         at = 2; template tokens and generation prompt included
              action [9]                at = 3

    A sampled action has `sampled_logprobs` and `versions`; an action without them is a demonstration.
    """

    id: str
    parent: str | None
    at: int
    """Tokens of the parent that precede this node; 0 for a root."""
    kind: NodeKind
    token_ids: Int32  # [L]
    sampled_logprobs: Float32 | None = None  # [L], at `temperature`
    versions: Int32 | None = None  # [L], weights version that sampled each token
    policy: str = "main"
    temperature: float = 1.0
    entropies: Float32 | None = None  # [L], nats

    def __len__(self) -> int:
        return int(self.token_ids.shape[0])

    @property
    def sampled(self) -> bool:
        """Whether an engine sampled these tokens (rather than a template or a demonstration)."""
        return self.sampled_logprobs is not None

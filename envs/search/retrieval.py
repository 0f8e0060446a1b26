"""Finding documents: the seam between the environment and BM25, dense vectors or a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from envs.search.corpus import Corpus, Document

MAX_TOPK = 100


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found and how well it fits; higher is better."""

    document: Document
    score: float


@runtime_checkable
class Retriever(Protocol):
    """Finds documents; equal queries give equal hits. Called from several threads."""

    def retrieve(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """Up to `topk` hits for each query, best first.

        Raises:
            FaultError: what finds them is unreachable or broken.
        """
        ...


def best(
    corpus: Corpus, scores: npt.NDArray[np.float32], topk: int, *, above: float | None = None
) -> list[Hit]:
    """The `topk` best documents for `scores` (`[documents]`), ties in the corpus's order; only those `above`."""
    count = min(topk, len(scores))
    worst = np.partition(scores, -count)[-count]
    candidates = np.flatnonzero(scores >= worst)  # more than `count` where there are ties
    order = candidates[np.argsort(-scores[candidates], kind="stable")][:count]
    return [Hit(corpus.documents[i], float(scores[i])) for i in order if above is None or scores[i] > above]

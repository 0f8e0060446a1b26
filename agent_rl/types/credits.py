"""Credits: what the learner makes of a forest, kept apart so that a stored forest can be credited again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from agent_rl.types.node import Float64


class CreditRow(NamedTuple):
    """Advantage for tokens `start:end` of a node, as part of one chain of one episode."""

    node: str
    start: int
    end: int
    advantage: float
    weight: float
    episode: str
    chain: str
    """Leaf of the chain: sequence ratios and sequence means span the rows of one chain."""
    value_target: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Credits:
    """Rows in columns. No row means not trained; advantage 0 means trained on, without signal.

    A node shared by several episodes may have several rows; each is one copy in the unmerged reference.
    """

    nodes: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    advantages: Float64 = field(default_factory=lambda: np.zeros(0))  # [R]
    weights: Float64 = field(default_factory=lambda: np.zeros(0))  # [R]
    episodes: tuple[str, ...] = ()
    chains: tuple[str, ...] = ()
    value_targets: Float64 | None = None  # [R], nan where a row has none

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[CreditRow]:
        for i, node in enumerate(self.nodes):
            target = None if self.value_targets is None else float(self.value_targets[i])
            yield CreditRow(
                node,
                self.starts[i],
                self.ends[i],
                float(self.advantages[i]),
                float(self.weights[i]),
                self.episodes[i],
                self.chains[i],
                target,
            )

    @classmethod
    def of(cls, rows: Iterable[CreditRow]) -> Credits:
        """Build from rows; empty spans are dropped."""
        kept = [r for r in rows if r.end > r.start]
        targets = [np.nan if r.value_target is None else r.value_target for r in kept]
        return cls(
            tuple(r.node for r in kept),
            tuple(r.start for r in kept),
            tuple(r.end for r in kept),
            np.array([r.advantage for r in kept], np.float64),
            np.array([r.weight for r in kept], np.float64),
            tuple(r.episode for r in kept),
            tuple(r.chain for r in kept),
            np.array(targets, np.float64) if kept and not np.all(np.isnan(targets)) else None,
        )

    @property
    def tokens(self) -> int:
        """Loss tokens, one per row and position: the global token denominator."""
        return sum(e - s for s, e in zip(self.starts, self.ends, strict=True))

    @property
    def sequences(self) -> int:
        """Distinct (episode, chain) pairs with at least one token: the global sequence denominator."""
        return len(set(zip(self.episodes, self.chains, strict=True)))

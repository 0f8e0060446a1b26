"""Credit for tree rollouts: Tree-GRPO (arXiv 2509.21240) and TreeRL (arXiv 2506.11902)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from agent_rl.credit.baselines import normalise_within
from agent_rl.credit.config import CreditConfig
from agent_rl.credit.rows import action_spans, total_return, training, uniform_rows
from agent_rl.types import AnnotationName, Annotations, CreditRow, Credits, Episode, Forest


class Tree:
    """Credit by `config.rule`. The leaves of a tree are the episodes that branched from one another."""

    def __init__(self, config: CreditConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Nothing beyond the rewards."""
        return frozenset()

    def credit(self, forest: Forest, annotations: Annotations) -> Credits:
        """Rows by the rule: `tree_grpo` one per episode and node, `tree_rl` one per node segment."""
        if self._config.rule == "tree_grpo":
            return Credits.of(uniform_rows(forest, _inter_plus_intra(forest, self._config)))
        groups: dict[str, list[Episode]] = {}
        for episode in training(forest):
            groups.setdefault(episode.group_id, []).append(episode)
        return Credits.of(row for group in groups.values() for row in _segment_rows(forest, group))


def _inter_plus_intra(forest: Forest, config: CreditConfig) -> dict[str, float]:
    """Tree-GRPO: return relative to the group plus return relative to the own tree, by episode.

    A tree is named by its first turn; one with a single leaf adds 0. Shared prefixes get every leaf's.
    """
    episodes = training(forest)
    returns = [total_return(forest, e) for e in episodes]
    votes = [not e.exclude_from_baseline for e in episodes]
    trees: list[Hashable] = [(e.group_id, e.turns[0] if e.turns else e.id) for e in episodes]
    inter = normalise_within([e.group_id for e in episodes], returns, votes, config)
    intra = normalise_within(trees, returns, votes, config)
    return {e.id: float(a) for e, a in zip(episodes, inter + intra, strict=True)}


@dataclass(frozen=True, slots=True)
class _Segment:
    """Tokens `start:end` of an action node: they belong to the same leaves."""

    node: str
    start: int
    end: int
    leaves: frozenset[str]


def _segment_rows(forest: Forest, group: list[Episode]) -> Iterator[CreditRow]:
    """TreeRL: R(n) = [(V(n) - V(root)) + (V(n) - V(parent))] / sqrt(#leaves(n)), to each token once.

    V is the mean return of the leaves below. Turns between two branch points have the same leaves and form
    one node of the tree; an action that a branch cut inside is two. The root is the group's prompt. Leaves
    excluded from the baseline count only below nodes that have no others.
    """
    returns = {e.id: total_return(forest, e) for e in group}
    voters = {e.id for e in group if not e.exclude_from_baseline}

    def leaves_below(leaves: frozenset[str]) -> frozenset[str]:
        return (leaves & voters) or leaves

    def value(leaves: frozenset[str]) -> float:
        return float(np.mean([returns[e] for e in leaves_below(leaves)]))

    root = frozenset(returns)
    segments = _segments(forest, group)
    done: set[_Segment] = set()
    for episode in group:
        parent = current = root
        for span, chain in action_spans(forest, episode):
            for segment in segments[span.node]:
                if segment.end > span.end or segment.start < span.start:
                    continue
                if segment.leaves != current:
                    parent, current = current, segment.leaves
                if segment in done or episode.exclude_from_loss:
                    continue
                done.add(segment)
                v = value(current)
                r = (v - value(root) + v - value(parent)) / sqrt(len(leaves_below(current)))
                yield CreditRow(segment.node, segment.start, segment.end, r, 1.0, episode.id, chain)


def _segments(forest: Forest, group: list[Episode]) -> dict[str, list[_Segment]]:
    """Every action node of a group, cut where an episode leaves it."""
    reach: dict[str, dict[str, int]] = {}
    for episode in group:
        for span, _ in action_spans(forest, episode):
            ends = reach.setdefault(span.node, {})
            ends[episode.id] = max(span.end, ends.get(episode.id, 0))
    segments: dict[str, list[_Segment]] = {}
    for node, ends in reach.items():
        cuts = sorted({0, *ends.values()})
        segments[node] = [
            _Segment(node, start, end, frozenset(e for e, reached in ends.items() if reached >= end))
            for start, end in pairwise(cuts)
        ]
    return segments

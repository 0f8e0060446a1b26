"""Forest: the nodes, turns and episodes of one collection.

A plain episode is a tree with one leaf. A group branches at the root; tree search branches deeper, also inside
a turn; a summary opens a new chain with a new root. One structure serves all of them:

    root ─ a0 ─ o0 ─ a1            episode 0, one chain
         ├ a2 ─ o2 ─ a3            episode 1
         │    └ a4 ─ o4 ─ a5       episode 2 branched after a turn of episode 1
         └ a6 ─ s6 ┄ root' ─ a7    episode 3: s6 is a summary, root' opens its second chain
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from agent_rl.types.episode import Episode
from agent_rl.types.node import Int32, Node
from agent_rl.types.turn import Turn


class Span(NamedTuple):
    """Tokens `start:end` of a node."""

    node: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Forest:
    """Frozen: stages return a new one. Ids are unique over a run, so forests merge by union."""

    nodes: Mapping[str, Node] = field(default_factory=dict)
    turns: Mapping[str, Turn] = field(default_factory=dict)
    episodes: tuple[Episode, ...] = ()

    def path(self, leaf: str) -> list[Span]:
        """Spans from the root to the end of `leaf`: together exactly what the engine saw.

        Raises:
            KeyError: a node on the path is missing from the forest.
        """
        spans: list[Span] = []
        node = self.nodes[leaf]
        end = len(node)
        while True:
            spans.append(Span(node.id, 0, end))
            if node.parent is None:
                break
            end, node = node.at, self.nodes[node.parent]
        spans.reverse()
        return spans

    def tokens(self, leaf: str) -> Int32:
        """Token ids from the root to the end of `leaf`, [L] int32."""
        parts = [self.nodes[s.node].token_ids[s.start : s.end] for s in self.path(leaf)]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def actions(self, leaf: str) -> list[Span]:
        """The spans of a chain that the policy produced, shared prefixes included."""
        return [s for s in self.path(leaf) if self.nodes[s.node].kind == "action" and s.end > s.start]

    def groups(self) -> dict[str, list[Episode]]:
        """Episodes by group id, in order of appearance."""
        groups: dict[str, list[Episode]] = {}
        for episode in self.episodes:
            groups.setdefault(episode.group_id, []).append(episode)
        return groups

    def turn_rewards(self, episode: Episode) -> list[float]:
        """The reward of each turn of an episode, in execution order."""
        return [self.turns[t].reward for t in episode.turns]

    def select(self, episode_ids: Iterable[str]) -> Forest:
        """The forest of these episodes with only what they reach (discarded turns included)."""
        wanted = set(episode_ids)
        episodes = tuple(e for e in self.episodes if e.id in wanted)
        turns = {t: self.turns[t] for e in episodes for t in e.turns}
        ends = [leaf for e in episodes for leaf in e.leaves]
        ends += [n for t in turns.values() for n in (t.action, t.observation) if n is not None]
        nodes: dict[str, Node] = {}
        for end in ends:
            current: str | None = end
            while current is not None and current not in nodes:
                nodes[current] = self.nodes[current]
                current = nodes[current].parent
        return Forest(nodes, turns, episodes)


def merge(forests: Iterable[Forest]) -> Forest:
    """Union of forests, episodes in the order given.

    Raises:
        ValueError: two forests hold different episodes under one id.
    """
    nodes: dict[str, Node] = {}
    turns: dict[str, Turn] = {}
    episodes: dict[str, Episode] = {}
    for forest in forests:
        nodes.update(forest.nodes)
        turns.update(forest.turns)
        for episode in forest.episodes:
            if episodes.setdefault(episode.id, episode) != episode:
                raise ValueError(f"episode ids are unique over a run, but {episode.id!r} names two episodes")
    return Forest(nodes, turns, tuple(episodes.values()))

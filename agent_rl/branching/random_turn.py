"""Tree-GRPO: grow a few trees, then continue from random earlier turns of each.

Round 0 starts `trees` episodes at the root. Each further round draws, in every tree and with replacement,
`expansions` turns that are not the last of their episode, and starts one episode after each: prompt, earlier
turns and their keys and values are shared. A tree is the set of episodes with the same first turn.
Source: arXiv 2509.21240 (reference C3).
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from agent_rl.branching.config import BranchingConfig
from agent_rl.types.forest import Forest
from agent_rl.types.seams import Branch


class RandomTurn:
    """Branches after random inner turns, one round at a time until rounds or budget end."""

    snapshots = True

    def __init__(self, config: BranchingConfig) -> None:
        self.trees = config.trees
        self.rounds = config.rounds
        self.expansions = config.expansions

    def next(self, forest: Forest, budget: int, rng: np.random.Generator) -> list[Branch]:
        """Start the trees, then one round of expansions for each call."""
        if budget <= 0:
            return []
        root = next(n for n in forest.nodes.values() if n.parent is None)
        if not forest.episodes:
            return [Branch(root.id, len(root), min(self.trees, budget))]
        started = max(len(forest.episodes) - self.trees, 0)
        per_round = self.trees * self.expansions
        if started >= self.rounds * per_round:
            return []
        chosen: Counter[tuple[str, int]] = Counter()
        grown = [inner for inner in self._inner_turns(forest).values() if inner]
        for inner in grown[: self.trees]:
            chosen.update(inner[int(i)] for i in rng.choice(len(inner), self.expansions))
        # Trees whose episodes ended with their first turn cannot branch; their share restarts at the root.
        missing = per_round - chosen.total()
        if missing:
            chosen[(root.id, len(root))] += missing
        return _within(chosen, budget)

    def _inner_turns(self, forest: Forest) -> dict[str, list[tuple[str, int]]]:
        """For each tree the points after turns that have a successor, without repeats."""
        trees: dict[str, dict[tuple[str, int], None]] = {}
        for episode in forest.episodes:
            if not episode.turns or episode.fault is not None:
                continue
            points = trees.setdefault(episode.turns[0], {})
            seen = {span.node for leaf in episode.leaves for span in forest.path(leaf)}
            for turn_id in episode.turns[:-1]:
                turn = forest.turns[turn_id]
                # What a context rewrite discarded was never seen again: nothing continues there.
                if turn.kind == "env" and turn.observation in seen:
                    points[(turn.observation, len(forest.nodes[turn.observation]))] = None
        return {tree: list(points) for tree, points in trees.items()}


def _within(chosen: Counter[tuple[str, int]], budget: int) -> list[Branch]:
    branches = []
    for (node, at), n in chosen.items():
        take = min(n, budget)
        budget -= take
        if take:
            branches.append(Branch(node, at, take))
    return branches

"""Split the credits of one collection into several optimiser steps."""

from __future__ import annotations

import numpy as np

from agent_rl.types import Credits


def split(credits: Credits, parts: int) -> list[Credits]:
    """Divide rows into at most `parts` Credits of whole episodes, in order and about equal in episodes.

    Consecutive episodes stay together, so that a group keeps its shared prefixes in one trie. Advantages are
    unchanged: statistics were taken over the whole collection.

    Raises:
        ValueError: `parts` is below 1.
    """
    if parts < 1:
        raise ValueError(f"credits are split into at least one part, but parts is {parts}")
    episodes = list(dict.fromkeys(credits.episodes))
    shares = [s for s in np.array_split(np.arange(len(episodes)), parts) if len(s)]
    return [_only(credits, {episodes[i] for i in share}) for share in shares]


def _only(credits: Credits, episodes: set[str]) -> Credits:
    kept = [i for i, episode in enumerate(credits.episodes) if episode in episodes]
    targets = credits.value_targets
    return Credits(
        tuple(credits.nodes[i] for i in kept),
        tuple(credits.starts[i] for i in kept),
        tuple(credits.ends[i] for i in kept),
        credits.advantages[kept],
        credits.weights[kept],
        tuple(credits.episodes[i] for i in kept),
        tuple(credits.chains[i] for i in kept),
        None if targets is None else targets[kept],
    )

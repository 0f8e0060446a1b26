"""Score a forest: the log-probabilities of its sampled tokens, over the trie, without gradient."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from agent_rl import batching
from agent_rl.types import Annotations, CreditRow, Credits, Forest, Pack
from agent_rl.types.node import Float32, Node


def rows_to_score(forest: Forest, policy: str, nodes: Collection[str] | None) -> Credits:
    """One row for every sampled action node of a policy, on the first chain that holds all of it.

    Greedy actions (temperature 0) have no distribution to score and are left out, as are other policies' nodes
    and demonstrations.
    """

    def wanted(node: Node) -> bool:
        if node.kind != "action" or not node.sampled or node.policy != policy or node.temperature <= 0:
            return False
        return len(node) > 0 and (nodes is None or node.id in nodes)

    def rows() -> Iterator[CreditRow]:
        seen: set[str] = set()
        for leaf in dict.fromkeys(leaf for e in forest.episodes for leaf in e.leaves):
            for span in forest.actions(leaf):
                node = forest.nodes[span.node]
                if span.end == len(node) and node.id not in seen and wanted(node):
                    seen.add(node.id)
                    yield CreditRow(node.id, 0, span.end, 0.0, 1.0, "", leaf)
        # Discarded actions and those that every chain left early are the ends of paths of their own.
        for node in forest.nodes.values():
            if node.id not in seen and wanted(node):
                yield CreditRow(node.id, 0, len(node), 0.0, 1.0, "", node.id)

    return Credits.of(rows())


def node_logprobs(
    forest: Forest, credits: Credits, policy: str, token_budget: int, score: Callable[[Pack], Float32]
) -> dict[str, Float32]:
    """Run `score` over the packs of the rows and return its values [L] by node."""
    batch = batching.build(forest, credits, Annotations(), policy=policy, token_budget=token_budget)
    chains: dict[str, list[int]] = {}
    for row, chain in enumerate(credits.chains):
        chains.setdefault(chain, []).append(row)
    rows_of = list(chains.values())  # sequences are numbered in order of appearance
    found: dict[str, Float32] = {}
    for pack in batch.packs:
        values = score(pack)
        # The loss tokens of a sequence stand in a pack in the order of its rows.
        for sequence in np.unique(pack.sequences).tolist():
            mine = values[pack.sequences == sequence]
            rows = rows_of[sequence]
            ends = np.cumsum([credits.ends[r] - credits.starts[r] for r in rows])
            for row, part in zip(rows, np.split(mine, ends[:-1]), strict=True):
                found[credits.nodes[row]] = part
    return found

"""Targets: the credit rows of a pack as loss tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agent_rl.batching.layout import Layout
from agent_rl.types import Annotations, Credits, Forest, Pack
from agent_rl.types.node import Node


@dataclass(frozen=True, slots=True)
class Source:
    """What loss tokens are read from."""

    forest: Forest
    credits: Credits
    annotations: Annotations


def pack(layout: Layout, source: Source) -> Pack:
    """A finished pack: every row of every chain, one loss token per row and position."""
    credits, nodes = source.credits, source.forest.nodes
    rows = [
        (s, i, first, index) for s, index in layout.members for i, first in zip(s.rows, s.starts, strict=True)
    ]
    spans = [(nodes[credits.nodes[i]], credits.starts[i], credits.ends[i]) for _, i, _, _ in rows]
    numbers = np.array([i for _, i, _, _ in rows])
    lengths = np.array([end - start for _, start, end in spans])
    token_ids, positions, subtree_end = layout.arrays()

    def each(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        return np.repeat(values, lengths).astype(np.float32)

    return Pack(
        token_ids=token_ids,
        positions=positions,
        subtree_end=subtree_end,
        # A token is predicted by the one before it on the same chain.
        predict_from=np.concatenate(
            [index[f - 1 : f - 1 + n] for (_, _, f, index), n in zip(rows, lengths, strict=True)]
        ),
        labels=np.concatenate([node.token_ids[a:b] for node, a, b in spans]).astype(np.int64),
        advantages=each(credits.advantages[numbers]),
        weights=each(credits.weights[numbers]),
        temperatures=each(np.array([node.temperature for node, _, _ in spans])),
        sampled_logprobs=np.concatenate([_sampled(node)[a:b] for node, a, b in spans]),
        proximal_logprobs=_proximal(spans, source.annotations),
        reference_logprobs=_reference(spans, source.annotations),
        sequences=np.repeat(np.array([s.index for s, _, _, _ in rows]), lengths),
        versions=np.concatenate([_versions(node)[a:b] for node, a, b in spans]).astype(np.int64),
    )


def _sampled(node: Node) -> npt.NDArray[np.float32]:
    return np.full(len(node), np.nan, np.float32) if node.sampled_logprobs is None else node.sampled_logprobs


def _versions(node: Node) -> npt.NDArray[np.int32]:
    return np.full(len(node), -1, np.int32) if node.versions is None else node.versions


def _proximal(spans: list[tuple[Node, int, int]], annotations: Annotations) -> npt.NDArray[np.float32] | None:
    """Scored log-probabilities, the sampled ones where a node was not scored; None when nothing was."""
    if "proximal_logprobs" not in annotations.arrays:
        return None
    parts = []
    for node, start, end in spans:
        scored = annotations.get("proximal_logprobs", node.id)
        parts.append((_sampled(node) if scored is None else scored)[start:end])
    return np.concatenate(parts)


def _reference(
    spans: list[tuple[Node, int, int]], annotations: Annotations
) -> npt.NDArray[np.float32] | None:
    """Reference log-probabilities; None when none were computed, nan for nodes that have none."""
    if "reference_logprobs" not in annotations.arrays:
        return None
    parts = []
    for node, start, end in spans:
        scored = annotations.get("reference_logprobs", node.id)
        parts.append(np.full(end - start, np.nan, np.float32) if scored is None else scored[start:end])
    return np.concatenate(parts)

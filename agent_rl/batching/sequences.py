"""Sequences: the token path of every chain that has credit rows, up to its last trained token."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from agent_rl.types import Credits, Forest
from agent_rl.types.forest import Span
from agent_rl.types.node import Int32


@dataclass(slots=True)
class Sequence:
    """One (episode, chain): `rows` are indices into Credits, `starts` their first position in the chain."""

    index: int
    """Number in the whole batch, in order of appearance in Credits."""
    chain: str
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    end: int = 0
    """Positions up to the last trained token, that token included."""
    loss_tokens: int = 0
    token_ids: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))


def collect(forest: Forest, credits: Credits, policy: str) -> list[Sequence]:
    """The sequences of one policy with their rows and tokens.

    Raises:
        ValueError: a row trains what cannot be trained: see `_position`.
        KeyError: a row names a node or chain that the forest does not hold.
    """
    sequences: dict[tuple[str, str], Sequence] = {}
    paths: dict[str, dict[str, tuple[int, int]]] = {}
    for row, node in enumerate(credits.nodes):
        if forest.nodes[node].policy != policy:
            continue
        chain = credits.chains[row]
        if chain not in paths:
            paths[chain] = _offsets(forest.path(chain))
        position = _position(forest, credits, row, paths[chain])
        key = (credits.episodes[row], chain)
        sequence = sequences.setdefault(key, Sequence(len(sequences), chain))
        length = credits.ends[row] - credits.starts[row]
        sequence.rows.append(row)
        sequence.starts.append(position)
        sequence.end = max(sequence.end, position + length)
        sequence.loss_tokens += length
    tokens: dict[str, npt.NDArray[np.int32]] = {}
    for sequence in sequences.values():
        if sequence.chain not in tokens:
            tokens[sequence.chain] = forest.tokens(sequence.chain)
        sequence.token_ids = tokens[sequence.chain][: sequence.end]
    return list(sequences.values())


def _offsets(path: list[Span]) -> dict[str, tuple[int, int]]:
    """Node id to (position of its first token in the chain, how many of its tokens are on the chain)."""
    offsets: dict[str, tuple[int, int]] = {}
    position = 0
    for span in path:
        offsets[span.node] = (position, span.end)
        position += span.end - span.start
    return offsets


def _position(forest: Forest, credits: Credits, row: int, offsets: dict[str, tuple[int, int]]) -> int:
    """Position in the chain of a row's first token, after checking that the row can be trained."""
    name, start, end = credits.nodes[row], credits.starts[row], credits.ends[row]
    where = f"credit row {row} (node {name!r}, tokens {start}:{end}, chain {credits.chains[row]!r})"
    node = forest.nodes[name]
    if node.kind != "action":
        raise ValueError(
            f"only action tokens are trained, but {where} is an {node.kind}: credit actions only"
        )
    if node.temperature <= 0:
        raise ValueError(
            f"trained tokens are sampled at a temperature above 0, but {where} has {node.temperature}: "
            "exclude greedy episodes from the credits"
        )
    if name not in offsets or not 0 <= start < end <= offsets[name][1]:
        have = f"holds {offsets[name][1]} tokens of the node" if name in offsets else "does not pass the node"
        raise ValueError(f"a row lies on its chain, but {where}: the chain {have}")
    position = offsets[name][0] + start
    if position == 0:
        raise ValueError(f"the first token of a root has nothing to predict it from, but {where} covers it")
    return position

"""The forward pass over a pack: hidden states of every token of its tries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agent_rl.learner.tree_attention import base_forward, tree_mask
from agent_rl.types import Pack
from agent_rl.types.batch import Int64


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A pack as rows of one model call. Tries with different roots do not see each other, so they are stacked
    in rows as long as the longest one: a mask over the whole pack would cost the square of its size.
    """

    token_ids: Int64  # [B, L], 0 where padded
    positions: Int64  # [B, L]
    subtree_end: Int64  # [B, L] within the row; padding sees itself only
    places: Int64  # [N] index of each token of the pack in the flattened rows
    causal: bool
    """Every row is one chain without branches: no mask is needed."""


def arrange(pack: Pack) -> Arrangement:
    """Distribute the tries of a pack over rows, longest first, each into the first row with room."""
    starts = np.flatnonzero(pack.positions == 0)
    sizes = np.diff(starts, append=pack.size)
    length = int(sizes.max())
    used: list[int] = []
    spots: list[tuple[int, int]] = [(0, 0)] * len(starts)
    for root in np.argsort(-sizes, kind="stable").tolist():
        row = next((r for r, u in enumerate(used) if u + sizes[root] <= length), len(used))
        if row == len(used):
            used.append(0)
        spots[root] = (row, used[row])
        used[row] += int(sizes[root])
    shape = (len(used), length)
    token_ids, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    subtree_end = np.tile(np.arange(1, length + 1), (len(used), 1))
    places = np.empty(pack.size, np.int64)
    for (row, column), start, size in zip(spots, starts.tolist(), sizes.tolist(), strict=True):
        there, here = slice(column, column + size), slice(start, start + size)
        token_ids[row, there] = pack.token_ids[here]
        positions[row, there] = pack.positions[here]
        subtree_end[row, there] = pack.subtree_end[here] - start + column
        places[here] = row * length + np.arange(column, column + size)
    causal = len(used) == len(starts) and _unbranched(pack, starts)
    return Arrangement(token_ids, positions, subtree_end, places, causal)


def _unbranched(pack: Pack, starts: Int64) -> bool:
    """Whether no trie of the pack branches: positions then fall back only where a new root begins."""
    falls = np.flatnonzero(np.diff(pack.positions) != 1) + 1
    return bool(np.isin(falls, starts).all())


def hidden_states(model: Any, pack: Pack) -> Tensor:
    """Last hidden state of every token of the pack, [N, H]."""
    arrangement = arrange(pack)
    device = model.device
    token_ids = torch.from_numpy(arrangement.token_ids).to(device)
    if arrangement.causal:
        hidden = base_forward(model, token_ids, None, None)
    else:
        mask = tree_mask(torch.from_numpy(arrangement.subtree_end).to(device))[:, None]
        hidden = base_forward(model, token_ids, torch.from_numpy(arrangement.positions).to(device), mask)
    places = torch.from_numpy(arrangement.places).to(device)
    return hidden.flatten(0, 1).index_select(0, places)

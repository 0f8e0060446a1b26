"""A forest in one file, exactly: bit for bit, `None` included, in the order in which it was collected.

Arrays of all nodes are concatenated, one run for each field and dtype (`token_ids|<i4`), and the JSON says which
pieces are whose:

    meta    {"kind": "forest", "nodes": [{"id": "n0", ..., "arrays": {"token_ids": ["<i4", 3]}}, ...],
             "turns": [...], "episodes": [...]}
    token_ids|<i4    1 2 3 | 4 5 | ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agent_rl.storage import array_file
from agent_rl.storage.errors import DamagedFile
from agent_rl.types import Episode, Forest, Node, Turn
from envs.types import Fault, RewardComponent

_ARRAYS = ("token_ids", "sampled_logprobs", "versions", "entropies")
_KIND = "forest"


def save_forest(path: Path, forest: Forest) -> int:
    """Write a forest atomically; returns the file's size in bytes.

    Raises:
        StorageFull: there is no space; an earlier file at `path` is intact.
        ValueError: an array of a node is not one-dimensional.
    """
    pieces: dict[str, list[npt.NDArray[Any]]] = {}
    meta = {
        "kind": _KIND,
        "nodes": [_node_meta(node, pieces) for node in forest.nodes.values()],
        "turns": [_plain(turn) for turn in forest.turns.values()],
        "episodes": [_plain(episode) for episode in forest.episodes],
    }
    return array_file.save(path, meta, {name: np.concatenate(runs) for name, runs in pieces.items()})


def load_forest(path: Path) -> Forest:
    """Read a forest back.

    Raises:
        FileNotFoundError: there is none.
        DamagedFile: the file was cut or changed.
    """
    meta, arrays = array_file.load(path, _KIND)
    used = dict.fromkeys(arrays, 0)
    try:
        nodes = [_node(item, arrays, used) for item in meta["nodes"]]
        turns = [_turn(item) for item in meta["turns"]]
        episodes = tuple(_episode(item) for item in meta["episodes"])
    except (KeyError, TypeError, IndexError) as error:
        raise DamagedFile(path, f"{type(error).__name__}: {error}") from error
    return Forest({n.id: n for n in nodes}, {t.id: t for t in turns}, episodes)


def _node_meta(node: Node, pieces: dict[str, list[npt.NDArray[Any]]]) -> dict[str, Any]:
    meta = {f.name: getattr(node, f.name) for f in fields(node) if f.name not in _ARRAYS}
    placed: dict[str, Any] = {}
    for name in _ARRAYS:
        array = getattr(node, name)
        if array is None:
            continue
        if array.ndim != 1:
            raise ValueError(f"arrays of a node are [L], but {name} of {node.id!r} has shape {array.shape}")
        pieces.setdefault(f"{name}|{array.dtype.str}", []).append(array)
        placed[name] = [array.dtype.str, len(array)]
    return {**meta, "arrays": placed}


def _node(meta: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], used: dict[str, int]) -> Node:
    rest = {k: v for k, v in meta.items() if k != "arrays"}
    own: dict[str, Any] = {}
    for name, (dtype, length) in meta["arrays"].items():
        key = f"{name}|{dtype}"
        start = used[key]
        used[key] = start + length
        own[name] = arrays[key][start : start + length]
        if len(own[name]) != length:
            raise IndexError(f"{name} of node {meta['id']!r} ends early")
    return Node(**rest, **own)


def _plain(noun: Turn | Episode) -> dict[str, Any]:
    """Fields of a noun as JSON values."""
    plain: dict[str, Any] = {}
    for field in fields(noun):
        value = getattr(noun, field.name)
        if field.name == "rewards":
            value = [{f.name: getattr(c, f.name) for f in fields(c)} for c in value]
        elif field.name == "fault" and value is not None:
            value = {f.name: getattr(value, f.name) for f in fields(value)}
        elif field.name == "metadata":
            value = dict(value)
        plain[field.name] = value
    return plain


def _turn(meta: Mapping[str, Any]) -> Turn:
    return Turn(**{**meta, "rewards": _rewards(meta), "fault": _fault(meta)})


def _episode(meta: Mapping[str, Any]) -> Episode:
    return Episode(
        **{
            **meta,
            "turns": tuple(meta["turns"]),
            "leaves": tuple(meta["leaves"]),
            "rewards": _rewards(meta),
            "fault": _fault(meta),
        }
    )


def _rewards(meta: Mapping[str, Any]) -> tuple[RewardComponent, ...]:
    return tuple(RewardComponent(**component) for component in meta["rewards"])


def _fault(meta: Mapping[str, Any]) -> Fault | None:
    return None if meta["fault"] is None else Fault(**meta["fault"])

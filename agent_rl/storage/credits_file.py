"""Credits in a file of their own beside the forest, so that a stored forest can be credited again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from agent_rl.storage import array_file
from agent_rl.storage.errors import DamagedFile
from agent_rl.types import Credits

_KIND = "credits"
_NAMES = ("nodes", "episodes", "chains")


def save_credits(path: Path, credits: Credits) -> int:
    """Write credits atomically; returns the file's size in bytes.

    Raises:
        StorageFull: there is no space; an earlier file at `path` is intact.
    """
    meta = {"kind": _KIND, **{name: list(getattr(credits, name)) for name in _NAMES}}
    arrays = {
        "starts": np.array(credits.starts, np.int64),
        "ends": np.array(credits.ends, np.int64),
        "advantages": credits.advantages,
        "weights": credits.weights,
    }
    if credits.value_targets is not None:
        arrays["value_targets"] = credits.value_targets
    return array_file.save(path, meta, arrays)


def load_credits(path: Path) -> Credits:
    """Read credits back.

    Raises:
        FileNotFoundError: there is none.
        DamagedFile: the file was cut or changed.
    """
    meta, arrays = array_file.load(path, _KIND)
    try:
        return Credits(
            nodes=tuple(meta["nodes"]),
            starts=tuple(arrays["starts"].tolist()),
            ends=tuple(arrays["ends"].tolist()),
            advantages=arrays["advantages"],
            weights=arrays["weights"],
            episodes=tuple(meta["episodes"]),
            chains=tuple(meta["chains"]),
            value_targets=arrays.get("value_targets"),
        )
    except (KeyError, TypeError) as error:
        raise DamagedFile(path, f"{type(error).__name__}: {error}") from error

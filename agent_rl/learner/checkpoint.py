"""Save and load a learner: a folder that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model

WEIGHTS, STATE = "model.safetensors", "learner.pt"


def save(folder: Path, model: Any, state: dict[str, Any]) -> None:
    """Write the model as transformers reads it, and `state` beside it, replacing an older checkpoint.

    Raises:
        OSError: the disk is full or not writable; an older checkpoint at `folder` is intact.
    """
    with _replacing(folder) as partial:
        try:
            model.save_pretrained(partial, max_shard_size=1 << 60)  # one file, whatever the size
            torch.save({**state, "rng": _rng_state()}, partial / STATE)
        except (SafetensorError, RuntimeError) as error:  # how the two writers report a failing disk
            raise OSError(
                f"cannot write the checkpoint {folder}: {error}; free space and save again"
            ) from error


def load(folder: Path, model: Any) -> dict[str, Any]:
    """Load weights in place and the generators' states; returns the rest of the state.

    Raises:
        FileNotFoundError: there is no checkpoint.
        ValueError: the checkpoint is of another model.
    """
    source = folder if folder.exists() else _aside(folder)
    if not (source / STATE).exists():
        raise FileNotFoundError(
            f"a checkpoint is a folder with {WEIGHTS} and {STATE}, but {folder} is not one"
        )
    try:
        load_model(model, source / WEIGHTS, strict=True, device=str(model.device))
    except RuntimeError as error:
        raise ValueError(
            f"the checkpoint {folder} is of another model than the learner's: {str(error)[:500]}; "
            f"load the model from the checkpoint's config.json"
        ) from error
    state: dict[str, Any] = torch.load(source / STATE, map_location="cpu", weights_only=True)
    rng = state.pop("rng")
    torch.set_rng_state(rng["cpu"])
    if torch.cuda.is_available() and rng["cuda"]:
        torch.cuda.set_rng_state_all(rng["cuda"])
    return state


def _rng_state() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def _aside(folder: Path) -> Path:
    """Where an older checkpoint waits while a new one takes its place."""
    return folder.with_name(f".{folder.name}.old")


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of `folder` at the end; on an error nothing has changed.

    A crash between the two renames leaves the older checkpoint under `_aside`, where `load` finds it.
    """
    partial, aside = folder.with_name(f".{folder.name}.partial"), _aside(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if aside.exists() and not folder.exists():
        aside.rename(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for path in (*partial.iterdir(), partial):
            _sync(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    partial.rename(folder)
    _sync(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

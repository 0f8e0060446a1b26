"""Publish through files: the engine reads what survives a crash of the learner.

```
 folder/main/version-000002/model.safetensors
             version-000003/model.safetensors      appears complete or not at all
             .partial-...                          a writer died here; removed by the next publish
```
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from agent_rl.types.seams import Engine
from agent_rl.weights.config import WeightsConfig

_FILE = "model.safetensors"
_PARTIAL = ".partial-"
_VERSION = re.compile(r"version-(\d{6,})")
_POLICY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class DiskPublisher:
    """A `WeightPublisher` that writes each version to disk and has the engine load the file.

    Args:
        engine: loads what was written.
        folder: one sub-folder per policy; created when missing. One publisher at a time writes to it.
        keep: newest versions that stay.
    """

    def __init__(self, engine: Engine, folder: Path, *, keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep is at least 1, for the version being served; it is {keep}")
        self._engine = engine
        self._folder = Path(folder)
        self._keep = keep

    @classmethod
    def from_config(cls, config: WeightsConfig, engine: Engine, folder: Path | None) -> DiskPublisher:
        """Build one from the configuration.

        Raises:
            ValueError: no folder was given.
        """
        if folder is None:
            raise ValueError("publishing to disk needs a folder; give one, or set weights.name=memory")
        return cls(engine, folder, keep=config.keep)

    async def publish(self, policy: str, version: int, tensors: Mapping[str, Any]) -> int:
        """Write the version, load it into the engine from the file, then delete the oldest ones.

        A version that already exists is replaced, and later ones are deleted: a run resumed from an older
        checkpoint has left them behind.

        Raises:
            ValueError: the engine refused the tensors, or the policy cannot name a folder.
            OSError: the disk is full or not writable; the engine serves what it had.
        """
        if not _POLICY.fullmatch(policy):
            raise ValueError(f"a policy's name is letters, digits, '_', '.' and '-'; it is {policy!r}")
        folder = self._folder / policy
        path = await asyncio.to_thread(_write, folder, version, tensors)
        await self._engine.load_weights(policy, version, await asyncio.to_thread(load_file, path))
        await asyncio.to_thread(_prune, folder, version, self._keep)
        return version


def versions(folder: Path) -> dict[int, Path]:
    """Complete versions in one policy's folder and their files, oldest first."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _VERSION.fullmatch(path.name)
        if match:
            found[int(match[1])] = path / _FILE
    return dict(sorted(found.items()))


def _write(folder: Path, version: int, tensors: Mapping[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(left)
    partial = folder / f"{_PARTIAL}{version}-{os.getpid()}"
    partial.mkdir()
    save_file(_separate(tensors), partial / _FILE)
    _sync(partial / _FILE)
    _sync(partial)
    final = folder / f"version-{version:06d}"
    if final.exists():
        final.rename(partial.with_name(f"{partial.name}-old"))
    partial.rename(final)
    _sync(folder)
    return final / _FILE


def _separate(tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Give each tensor its own memory on the CPU: safetensors refuses shared memory, as of tied weights."""
    separate: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        tensor = torch.as_tensor(value).detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        shares = storage.data_ptr() in seen or storage.nbytes() != tensor.nbytes
        separate[name] = tensor.clone() if shares else tensor
        seen.add(storage.data_ptr())
    return separate


def _sync(path: Path) -> None:
    """Make sure that a power cut keeps what was written."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prune(folder: Path, version: int, keep: int) -> None:
    found = versions(folder)
    kept = [number for number in found if number <= version][-keep:]
    for number, path in found.items():
        if number not in kept:
            shutil.rmtree(path.parent)
    for left in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(left)

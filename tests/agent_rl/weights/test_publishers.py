from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from agent_rl.inference import ScriptedEngine
from agent_rl.types.seams import WeightPublisher
from agent_rl.weights import MemoryPublisher, WeightsConfig, make
from agent_rl.weights.disk import DiskPublisher, versions


class Recorder(ScriptedEngine):
    """A scripted engine that keeps the tensors it was given."""

    def __init__(self) -> None:
        super().__init__([], window=16, vocab=10)
        self.tensors: dict[str, torch.Tensor] = {}

    async def load_weights(self, policy: str, version: int, tensors: Mapping[str, Any]) -> None:
        await super().load_weights(policy, version, tensors)
        self.tensors = dict(tensors)


def weights(value: float) -> dict[str, torch.Tensor]:
    shared = torch.full((2, 3), value)
    return {"embed": shared, "head": shared, "row": torch.arange(6.0).reshape(2, 3).T[1]}


def test_memory_hands_over() -> None:
    engine = Recorder()
    tensors = weights(1.0)
    assert asyncio.run(MemoryPublisher(engine).publish("main", 4, tensors)) == 4
    assert engine.loads == [("main", 4)]
    assert engine.tensors["embed"] is tensors["embed"]


def test_disk_writes_loads_and_keeps_the_last(tmp_path: Path) -> None:
    engine = Recorder()
    publisher = DiskPublisher(engine, tmp_path, keep=2)
    for version in (1, 2, 3):
        assert asyncio.run(publisher.publish("main", version, weights(float(version)))) == version
    found = versions(tmp_path / "main")
    assert list(found) == [2, 3]
    assert found[3] == tmp_path / "main" / "version-000003" / "model.safetensors"
    on_disk = load_file(found[3])
    for name, tensor in weights(3.0).items():
        assert torch.equal(on_disk[name], tensor)
        assert torch.equal(engine.tensors[name], tensor)


def test_a_resumed_run_replaces_its_abandoned_future(tmp_path: Path) -> None:
    publisher = DiskPublisher(Recorder(), tmp_path, keep=5)
    for version, value in ((1, 1.0), (2, 2.0), (3, 3.0), (2, 9.0)):
        asyncio.run(publisher.publish("main", version, weights(value)))
    found = versions(tmp_path / "main")
    assert list(found) == [1, 2]
    assert load_file(found[2])["embed"][0, 0] == 9.0


def test_half_written_versions_are_not_seen_and_removed(tmp_path: Path) -> None:
    left = tmp_path / "main" / ".partial-7-1"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_bytes(b"half")
    assert versions(tmp_path / "main") == {}
    asyncio.run(DiskPublisher(Recorder(), tmp_path).publish("main", 1, weights(1.0)))
    assert [path.name for path in (tmp_path / "main").iterdir()] == ["version-000001"]


def test_a_policy_cannot_leave_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'\.\./main'"):
        asyncio.run(DiskPublisher(Recorder(), tmp_path).publish("../main", 1, weights(1.0)))


def test_make_knows_names_and_dotted_paths(tmp_path: Path) -> None:
    engine = Recorder()
    assert isinstance(make(WeightsConfig(), engine), MemoryPublisher)
    disk = make(WeightsConfig(name="disk"), engine, tmp_path)
    assert isinstance(disk, DiskPublisher)
    assert isinstance(disk, WeightPublisher)
    dotted = WeightsConfig(name="agent_rl.weights.memory:MemoryPublisher")
    assert isinstance(make(dotted, engine), MemoryPublisher)
    with pytest.raises(ValueError, match="Did you mean 'memory'"):
        make(WeightsConfig(name="memroy"), engine)
    with pytest.raises(ValueError, match="needs a folder"):
        make(WeightsConfig(name="disk"), engine)

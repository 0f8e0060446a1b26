from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from agent_rl.storage import DamagedFile, StorageFull, load_credits, load_forest, save_credits, save_forest
from agent_rl.types import Credits, Forest, Node
from tests.agent_rl.storage.strategies import bits, contents, credit_rows, forests, small_forest

patient = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """What a full disk looks like to a process: writing beyond `size` bytes of a file fails."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@patient
@given(forest=forests())
def test_a_forest_comes_back_bit_for_bit(forest: Forest, tmp_path: Path) -> None:
    path = tmp_path / "forest.npz"
    size = save_forest(path, forest)
    content = path.read_bytes()
    loaded = load_forest(path)
    assert contents(loaded) == contents(forest)
    assert repr(loaded.episodes) == repr(forest.episodes)
    assert size == len(content)
    save_forest(path, loaded)
    assert path.read_bytes() == content


@patient
@given(credits=credit_rows)
def test_credits_come_back_bit_for_bit(credits: Credits, tmp_path: Path) -> None:
    path = tmp_path / "credits.npz"
    save_credits(path, credits)
    loaded = load_credits(path)
    for name in ("nodes", "starts", "ends", "episodes", "chains"):
        assert getattr(loaded, name) == getattr(credits, name)
    for name in ("advantages", "weights", "value_targets"):
        assert bits(getattr(loaded, name)) == bits(getattr(credits, name))


def test_numbers_of_numpy_in_metadata_become_plain(tmp_path: Path) -> None:
    forest = small_forest(1)
    episode = replace(forest.episodes[0], metadata={"level": np.int64(3)})
    save_forest(tmp_path / "f.npz", Forest(forest.nodes, forest.turns, (episode,)))
    assert load_forest(tmp_path / "f.npz").episodes[0].metadata == {"level": 3}


def test_arrays_of_nodes_have_one_dimension(tmp_path: Path) -> None:
    flat = Node(id="n", parent=None, at=0, kind="prompt", token_ids=np.zeros((2, 2), np.int32))
    with pytest.raises(ValueError, match=r"token_ids of 'n' has shape \(2, 2\)"):
        save_forest(tmp_path / "f.npz", Forest({"n": flat}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 1, 30, 200, -30, -1])
def test_a_cut_file_is_reported(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f.npz"
    save_forest(path, small_forest())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DamagedFile, match=r"f\.npz is not a whole file"):
        load_forest(path)


def test_a_file_of_another_kind_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    save_credits(path, Credits())
    with pytest.raises(DamagedFile, match="it does not hold a forest"):
        load_forest(path)
    with path.open("wb") as file:
        np.savez(file, meta=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DamagedFile):
        load_forest(path)
    with pytest.raises(FileNotFoundError):
        load_forest(tmp_path / "none.npz")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    save_forest(path, small_forest(2))
    before = path.read_bytes()
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2**31, 100_000, np.int32)
    big = Forest({"n": Node(id="n", parent=None, at=0, kind="prompt", token_ids=noise)})
    with file_size_limit(10_000), pytest.raises(StorageFull) as caught:
        save_forest(path, big)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert caught.value.needed is not None
    assert caught.value.needed > 300_000
    assert f"no space for {path}, {caught.value.needed} bytes needed" in str(caught.value)
    assert "free some space and run the same command again" in str(caught.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["f.npz"]
    save_forest(path, big)
    assert bits(load_forest(path).nodes["n"].token_ids) == bits(noise)


WRITER = """
import sys
from pathlib import Path
from agent_rl.storage import save_forest
from tests.agent_rl.storage.strategies import small_forest
for i in range(10**9):
    save_forest(Path(sys.argv[1]) / f"f{i % 3}.npz", small_forest(50, 1000 + i % 7))
    print(i, flush=True)
"""


def test_a_killed_writer_leaves_only_whole_files(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(4):
        assert process.stdout.readline()
    time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    visible = sorted(tmp_path.glob("*.npz"))
    assert [p.name for p in visible] == ["f0.npz", "f1.npz", "f2.npz"]
    for path in visible:
        assert len(load_forest(path).episodes) == 50

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from agent_rl.storage import DamagedFile, StorageFull, Store, list_runs
from agent_rl.types import CreditRow, Credits
from tests.agent_rl.storage.strategies import contents, small_forest
from tests.agent_rl.storage.test_files import file_size_limit


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "run", {"a": {"b": 1}}, 7)


def test_a_run_is_created_and_opened_again(store: Store) -> None:
    opened = Store.open(store.run_dir)
    info = opened.info()
    assert (info["name"], info["config"], info["seed"], info["status"]) == (
        "run",
        {"a": {"b": 1}},
        7,
        "running",
    )
    store.set_status("finished")
    assert opened.info()["status"] == "finished"


def test_a_run_in_a_database_of_its_own_is_found_without_being_told_where(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    Store.create(tmp_path / "run", {}, 3, url=url).record_step(0, {"x": 1.0})
    assert len(Store.open(tmp_path / "run").steps()) == 1
    assert [row["steps"] for row in list_runs(tmp_path)] == [1]
    assert not (tmp_path / "run" / "store.sqlite").exists()


def test_a_folder_holds_one_run(store: Store) -> None:
    again = Store.create(store.run_dir, {}, 0)  # nothing was recorded: what a crash left is used again
    assert again.info()["seed"] == 0
    again.record_step(0, {"x": 1.0})
    with pytest.raises(FileExistsError, match="already holds a run with steps"):
        Store.create(store.run_dir, {}, 0)
    with pytest.raises(FileNotFoundError, match="there is no run here"):
        Store.open(store.run_dir / "nothing")
    (store.run_dir / "run.json").write_text("{")
    with pytest.raises(DamagedFile):
        Store.open(store.run_dir)


def test_steps_keep_their_numbers(store: Store) -> None:
    store.record_step(1, {"b": math.nan, "c": -math.inf})
    store.record_step(0, {"a": 1.5})
    store.record_step(0, {"a": 0.1})
    rows = store.steps()
    assert rows[0] == {"step": 0, "metrics": {"a": 0.1}}
    assert math.isnan(rows[1]["metrics"]["b"])
    assert rows[1]["metrics"]["c"] == -math.inf


def test_episodes_are_rows(store: Store) -> None:
    forest = small_forest(3)
    store.record_episodes(4, forest)
    store.record_episodes(4, forest)
    rows = store.episodes(4)
    assert [r["id"] for r in rows] == ["e0", "e1", "e2"]
    assert store.episodes(3) == []
    row = {k: v for k, v in rows[2].items() if k != "run"}
    assert row == {
        "id": "e2",
        "step": 4,
        "group_id": "g",
        "sample": 2,
        "task_id": "task",
        "env": "sql-v1",
        "purpose": "train",
        "reward": 1.0,
        "turn_reward": 0.25,
        "stop": "submitted",
        "fault": None,
        "turns": 1,
        "tokens": 3,
        "duration_s": 1.5,
    }


def test_evaluations_and_checkpoints(store: Store) -> None:
    store.record_evaluation(5, "after", {"success": 0.9, "pass_at": {1: 0.9}, "low": math.nan})
    store.record_evaluation(0, "before", {"success": 0.4})
    store.record_evaluation(0, "before", {"success": 0.5})
    assert store.evaluations() == [
        {"step": 0, "name": "before", "report": {"success": 0.5}},
        {"step": 5, "name": "after", "report": {"success": 0.9, "pass_at": {"1": 0.9}, "low": None}},
    ]
    assert store.latest_checkpoint() is None
    for step in (0, 10):
        (store.run_dir / f"c{step}").mkdir()
        store.record_checkpoint(step, step + 1, f"c{step}")
    assert store.latest_checkpoint() == {"step": 10, "version": 11, "path": "c10"}
    (store.run_dir / "c10").rmdir()
    assert store.latest_checkpoint() == {"step": 0, "version": 1, "path": "c0"}


def test_forests_are_written_once(store: Store) -> None:
    path = store.save_forest(3, small_forest(2))
    assert path.name == "step-000003-train.npz"
    store.save_forest(3, small_forest(1), "eval")
    with pytest.raises(FileExistsError, match="written once"):
        store.save_forest(3, small_forest(1))
    assert contents(store.load_forest(3)) == contents(small_forest(2))
    assert len(store.load_forest(3, "eval").episodes) == 1
    with pytest.raises(FileNotFoundError, match="no train forest of step 4; the last is step 3, train"):
        store.load_forest(4)


def test_a_file_without_a_row_was_left_by_a_crash(store: Store) -> None:
    other = Store.create(store.run_dir.parent / "other", {}, 0)
    path = store.run_dir / "forests" / "step-000000-train.npz"
    path.parent.mkdir()
    other.save_forest(0, small_forest(1)).rename(path)
    store.save_forest(0, small_forest(2))
    assert len(store.load_forest(0).episodes) == 2
    assert store.forests()[0]["regenerated"] == 1


def test_credits_stand_beside_the_forest(store: Store) -> None:
    store.save_forest(0, small_forest(1))
    for advantage in (1.0, 2.0):
        store.save_credits(0, Credits.of([CreditRow("a0", 0, 1, advantage, 1.0, "e0", "a0")]))
    assert [r.advantage for r in store.load_credits(0)] == [2.0]
    with pytest.raises(FileNotFoundError):
        store.load_credits(1)


def test_a_resume_forgets_what_came_after(store: Store) -> None:
    store.save_forest(0, small_forest(1), "demonstrations")
    store.save_forest(0, small_forest(1), "eval")
    store.record_evaluation(0, "before", {})
    store.record_checkpoint(0, 0, "c0")
    for step in range(4):
        store.save_forest(step, small_forest(1))
        store.record_step(step, {"x": step})
    store.record_episodes(3, small_forest(1))
    store.record_evaluation(2, "step-2", {})
    store.record_evaluation(4, "after", {})
    store.record_checkpoint(2, 2, "c2")
    store.record_checkpoint(4, 4, "c4")

    store.truncate_after(1)  # the checkpoint after two finished steps is loaded

    assert [r["step"] for r in store.steps()] == [0, 1]
    assert store.episodes() == []
    assert [r["name"] for r in store.evaluations()] == ["before", "step-2"]
    assert [r["step"] for r in store.checkpoints()] == [0, 2]
    known = [(r["step"], r["purpose"]) for r in store.forests()]
    assert known == [(0, "demonstrations"), (0, "eval"), (0, "train"), (1, "train")]
    with pytest.raises(FileNotFoundError):
        store.load_forest(2)
    with pytest.raises(FileExistsError):
        store.save_forest(1, small_forest(2))
    store.save_forest(2, small_forest(2))
    assert len(store.load_forest(2).episodes) == 2
    assert [r["regenerated"] for r in store.forests()] == [0, 0, 0, 0, 1]

    store.truncate_after(-1)  # anew: what stood before the first step is repeated too
    assert store.steps() == []
    store.save_forest(0, small_forest(2), "demonstrations")
    store.save_forest(0, small_forest(2), "eval")
    store.save_forest(0, small_forest(2))
    assert len(store.load_forest(0, "eval").episodes) == 2


def test_a_full_disk_leaves_the_database_as_it_was(store: Store) -> None:
    store.record_step(0, {"x": 1.0})
    big = {f"metric_{i}": float(i) for i in range(20_000)}
    with (
        file_size_limit(100_000),
        pytest.raises(StorageFull, match=r"no space for .*store\.sqlite") as caught,
    ):
        store.record_step(1, big)
    assert "run the same command again" in str(caught.value)
    assert [r["step"] for r in store.steps()] == [0]
    store.record_step(1, big)
    assert store.steps()[1]["metrics"] == big


def test_a_reader_sees_committed_rows_while_a_writer_writes(store: Store) -> None:
    engine = create_engine(f"sqlite:///{store.run_dir / 'store.sqlite'}")
    try:
        with engine.begin() as writer:
            writer.execute(text("UPDATE runs SET status = 'half'"))
            assert store.info()["status"] == "running"
            assert store.steps() == []
    finally:
        engine.dispose()


def test_runs_are_listed(tmp_path: Path, store: Store) -> None:
    store.record_step(0, {})
    Store.create(tmp_path / "sweep" / "b", {}, 1, name="second")
    damaged = tmp_path / "broken"
    damaged.mkdir()
    (damaged / "run.json").write_text("[]")
    rows = {r["name"]: r for r in list_runs(tmp_path)}
    assert set(rows) == {"run", "second", "broken"}
    assert (rows["run"]["steps"], rows["run"]["status"]) == (1, "running")
    assert rows["second"]["path"] == str(tmp_path / "sweep" / "b")
    assert rows["broken"]["status"] == "damaged"
    assert list_runs(tmp_path / "nowhere") == []
    json.dumps(list_runs(tmp_path))


def test_several_runs_share_a_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    first, second = (Store.create(tmp_path / n, {}, 0, url=url) for n in "ab")
    first.record_step(0, {"x": 1.0})
    second.record_step(0, {"x": 2.0})
    second.truncate_after(-1)
    opened: Any = Store.open(tmp_path / "a", url=url)
    assert opened.steps() == [{"step": 0, "metrics": {"x": 1.0}}]
    assert not (tmp_path / "a" / "store.sqlite").exists()

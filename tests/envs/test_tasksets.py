from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.tasksets import by_split, generate, load_jsonl, save_jsonl, split_of, task_id, world_seeds
from envs.types import Split, Task
from tools.types import Message

PROMPT: list[Message] = [{"role": "user", "content": "2 + 2?"}]
ROW: dict[str, Any] = {"prompt": "2 + 2?", "answer": "4"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def load(
    folder: Path, *lines: str | bytes | dict[str, Any], env: str | None = "math-v1", **options: Any
) -> Any:
    path = folder / "tasks.jsonl"
    encoded = [json.dumps(x) if isinstance(x, dict) else x for x in lines]
    path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in encoded))
    return load_jsonl(path, env, **options)


def test_ids_come_from_content_alone() -> None:
    # A change here renames every stored task: raise the version of the environments instead.
    assert task_id("math-v1", PROMPT, {"a": 1}, "4") == "e28180665c5ccaa7"
    assert task_id("math-v1", PROMPT, {"a": 1, "b": 2}, "4") == task_id(
        "math-v1", PROMPT, {"b": 2, "a": 1}, "4"
    )
    others = [("math-v2", PROMPT, {}, "4"), ("math-v1", [], {}, "4"), ("math-v1", PROMPT, {"a": 2}, "4")]
    others.append(("math-v1", PROMPT, {}, "5"))
    assert len({task_id(*other) for other in others}) == 4
    with pytest.raises(TypeError, match="only JSON values"):
        task_id("math-v1", PROMPT, {"a": object()}, "4")


def test_rows_become_tasks(tmp_path: Path) -> None:
    full = {
        **ROW,
        "id": "mine",
        "env": "other-v1",
        "split": "test",
        "seed": 3,
        "metadata": {"level": 1},
        "data": {"x": []},
    }
    found = load(tmp_path, ROW, "", full, "   ")
    assert found.errors == ()
    first, second = found.tasks
    assert first.id == task_id("math-v1", PROMPT, {}, "4")
    assert (first.env, first.prompt, first.answer, first.split, first.seed) == (
        "math-v1",
        tuple(PROMPT),
        "4",
        "train",
        0,
    )
    assert (second.id, second.env, second.split, second.seed) == ("mine", "other-v1", "test", 3)
    assert (second.metadata, second.data) == ({"level": 1}, {"x": []})


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        (b'{"prompt": "\xff"}', "", "UTF-8, byte 12 is 0xff"),
        ('{"prompt": "a"', "", "one JSON object: Expecting ',' delimiter at column 15"),
        ("[1, 2]", "", "got list"),
        ('{"prompt": "a", "seed": NaN}', "", "NaN is not JSON"),
        ('{"prompt": "a", "prompt": "b"}', "", "'prompt' is given twice"),
        ("[" * 100_000, "", "one JSON object"),
        ({}, "prompt", "text or a list of messages"),
        ({"prompt": []}, "prompt", "text or a list of messages"),
        ({"prompt": [{"role": "boss", "content": "a"}]}, "prompt", "message 1 needs a role"),
        ({"prompt": [*PROMPT, {"role": "user"}]}, "prompt", "content of message 2 is text, got NoneType"),
        ('{"prompt": "\\ud800"}', "prompt", "lone surrogate"),
        ({**ROW, "anwser": 1}, "anwser", "did you mean 'answer'?"),
        ({**ROW, "xyzzy": 1}, "xyzzy", "put others in metadata"),
        ({**ROW, "env": 7}, "env", "got 7"),
        ({**ROW, "data": [1]}, "data", "an object is expected, got list"),
        ({**ROW, "metadata": "x"}, "metadata", "an object is expected, got str"),
        ({**ROW, "split": "dev"}, "split", "one of train, validation, test, got 'dev'"),
        ({**ROW, "seed": "1"}, "seed", "whole number from 0, got '1'"),
        ({**ROW, "seed": True}, "seed", "got True"),
        ({**ROW, "seed": -1}, "seed", "got -1"),
        ({**ROW, "id": 5}, "id", "an id is text, got 5"),
        ({**ROW, "id": ""}, "id", "an id is text"),
        ("9" * 5000, "", "one JSON object"),
    ],
)
def test_a_bad_row_is_reported_and_the_rest_is_loaded(
    tmp_path: Path, row: str | bytes | dict[str, Any], field: str, message: str
) -> None:
    found = load(tmp_path, ROW, row, {**ROW, "answer": "5"})
    assert [t.answer for t in found.tasks] == ["4", "5"]
    (error,) = found.errors
    assert (error.line, error.field) == (2, field)
    assert message in error.message
    assert str(error).startswith(f"{tmp_path}/tasks.jsonl, line 2")


def test_duplicates_name_the_first_line(tmp_path: Path) -> None:
    found = load(tmp_path, {**ROW, "id": "a"}, ROW, {**ROW, "id": "a"}, ROW)
    assert len(found.tasks) == 2
    assert [(e.line, e.field) for e in found.errors] == [(3, "id"), (4, "id")]
    assert "'a' is already on line 1" in found.errors[0].message


def test_a_huge_line_costs_itself_only(tmp_path: Path) -> None:
    huge = {**ROW, "answer": "x" * 5_000_000}
    found = load(tmp_path, huge, ROW, huge, max_line_bytes=1000)
    assert len(found.tasks) == 1
    assert [e.line for e in found.errors] == [1, 3]
    assert "at most 1000 bytes" in found.errors[0].message


def test_an_environment_must_be_known_from_somewhere(tmp_path: Path) -> None:
    found = load(tmp_path, ROW, env=None)
    assert found.tasks == ()
    assert found.errors[0].field == "env"


def test_files_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load_jsonl(tmp_path)


def test_byte_order_mark_windows_line_ends_and_gzip(tmp_path: Path) -> None:
    text = "\ufeff" + json.dumps(ROW) + "\r\n" + json.dumps({**ROW, "answer": "5"}) + "\r\n"
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8", newline="")
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    plain, zipped = (load_jsonl(tmp_path / name, "math-v1") for name in ("a.jsonl", "a.jsonl.gz"))
    assert plain.errors == zipped.errors == ()
    assert plain.tasks == zipped.tasks
    assert len(plain.tasks) == 2


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(texts, st.dictionaries(texts, json_values, max_size=3), json_values, st.integers(0, 2**40)),
        max_size=4,
    )
)
def test_saved_tasks_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]
) -> None:
    tasks = []
    for number, (prompt, data, answer, seed) in enumerate(rows):
        messages: tuple[Message, ...] = ({"role": "user", "content": prompt},)
        tasks.append(
            Task(
                id=f"t{number}",
                env="x-v1",
                prompt=messages,
                data=data,
                answer=answer,
                seed=seed,
                metadata={"n": 1},
            )
        )
    path = tmp_path_factory.mktemp("tasks") / "deep" / "tasks.jsonl"
    save_jsonl(path, tasks)
    found = load_jsonl(path)
    assert found.errors == ()
    assert list(found.tasks) == tasks
    assert [p.name for p in path.parent.iterdir()] == ["tasks.jsonl"]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    task = Task(id="a", env="x-v1", prompt=tuple(PROMPT))
    save_jsonl(path, [task])
    with pytest.raises(TypeError):
        save_jsonl(path, [task, Task(id="b", env="x-v1", prompt=tuple(PROMPT), answer=object())])
    assert load_jsonl(path).tasks == (task,)
    assert len(list(tmp_path.iterdir())) == 1


def test_splits() -> None:
    tasks = [
        Task(id=str(i), env="x-v1", prompt=(), split=s) for i, s in enumerate(["train", "test", "train"])
    ]  # type: ignore[arg-type]
    assert {k: [t.id for t in v] for k, v in by_split(tasks).items()} == {
        "train": ["0", "2"],
        "validation": [],
        "test": ["1"],
    }
    counts = {s: sum(split_of(f"k{i}") == s for i in range(2000)) for s in ("train", "validation", "test")}
    assert abs(counts["test"] - 200) < 60
    assert abs(counts["validation"] - 200) < 60
    assert split_of("k1") == split_of("k1")
    with pytest.raises(ValueError, match="below 1"):
        split_of("k", test=0.6, validation=0.4)


@given(st.integers(), st.integers(), st.integers(0, 40))
def test_seeds_of_two_splits_never_meet(seed: int, other: int, n: int) -> None:
    splits: tuple[Split, ...] = ("train", "validation", "test")
    seeds = {s: set(world_seeds(s, n, seed)) | set(world_seeds(s, n, other)) for s in splits}
    assert not seeds["train"] & seeds["test"]
    assert not seeds["train"] & seeds["validation"]
    assert not seeds["test"] & seeds["validation"]
    assert len(set(world_seeds("train", n, seed))) == n
    assert world_seeds("test", n, seed) == world_seeds("test", n + 3, seed)[:n]


def test_seeds_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="got 'dev'"):
        world_seeds("dev", 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got -1"):
        world_seeds("train", -1)


def test_generated_tasks_are_different_and_splits_share_none() -> None:
    def build(dice: random.Random) -> tuple[str, dict[str, int], int]:
        number = dice.randrange(400)
        return f"{number} + 1?", {"number": number}, number + 1

    made = {split: generate("plus-v1", split, 12, 0, build) for split in ("train", "test")}
    ids = [task.id for tasks in made.values() for task in tasks]
    assert len(set(ids)) == 24
    assert generate("plus-v1", "test", 5, 0, build) == made["test"][:5]
    assert made["train"][0].answer == made["train"][0].data["number"] + 1
    with pytest.raises(ValueError, match="gave 1 different tasks of split train, not 2"):
        generate("one-v1", "train", 2, 0, lambda dice: ("1 + 1?", {"n": 3}, 2))

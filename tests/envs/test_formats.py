from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from envs.formats import BadRow, Format, collect, read_records, read_tasks, required
from envs.taskrows import TaskFile
from envs.types import Split, Task


def riddle(path: Path, split: Split) -> TaskFile:
    def convert(row: dict[str, Any]) -> list[Task]:
        question, key = required(row, "riddle"), required(row, "key", int)
        prompt = ({"role": "user", "content": question},)
        return [Task(id=f"r{key}", env="riddle-v1", prompt=prompt, split=split)]  # type: ignore[arg-type]

    return collect(path, read_records(path), convert)


FORMATS = {
    "riddles": Format(read=riddle, fields=frozenset({"riddle", "key"})),
    "short": Format(read=riddle, fields=frozenset({"riddle"})),
    "boxes": Format(read=riddle, folder=lambda folder: (folder / "box.json").exists()),
}
ROWS = [
    {"riddle": "a?", "key": 1},
    {"riddle": "b?", "key": "x"},
    {"riddle": "c?"},
    {"riddle": "d?", "key": 1},
    {"riddle": "e?", "key": 2},
]


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.jsonl.gz", "r.json.gz"])
def test_a_bad_row_costs_one_report(tmp_path: Path, name: str) -> None:
    text = (
        json.dumps(ROWS, indent=1)
        if Path(name.removesuffix(".gz")).suffix == ".json"
        else "\n".join(map(json.dumps, ROWS))
    )
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    found = read_tasks(tmp_path / name, "riddle-v1", FORMATS, split="validation")
    assert [t.id for t in found.tasks] == ["r1", "r2"]
    assert {t.split for t in found.tasks} == {"validation"}
    assert [(e.line, e.field) for e in found.errors] == [(2, "key"), (3, "key"), (4, "id")]
    assert "int is expected, got str: 'x'" in found.errors[0].message


def test_formats_are_recognised_by_content(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text('{"prompt": "2 + 2?"}\n')
    assert len(read_tasks(own, "riddle-v1", FORMATS).tasks) == 1
    other = tmp_path / "other.jsonl"
    other.write_text('not JSON\n{"question": 1}\n')
    with pytest.raises(ValueError, match=r"no known format \(agent-rl, riddles, short, boxes\).*question"):
        read_tasks(other, "riddle-v1", FORMATS)
    with pytest.raises(ValueError, match=r"folder of no known format \(boxes\)"):
        read_tasks(tmp_path, "riddle-v1", FORMATS)
    with pytest.raises(ValueError, match="reads the formats agent-rl, riddles, short, boxes, got 'riddels'"):
        read_tasks(other, "riddle-v1", FORMATS, format="riddels")
    with pytest.raises(OSError, match="absent"):
        read_tasks(tmp_path / "absent.jsonl", "riddle-v1", FORMATS)


def test_without_formats_everything_is_the_own_one(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": 1}\n')
    assert [e.field for e in read_tasks(path, "x-v1", {}).errors] == ["question"]


def test_a_json_file_that_is_no_list_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[{"riddle": "a?"')
    with pytest.raises(ValueError, match="is not JSON"):
        list(read_records(path))


def test_truth_is_no_number() -> None:
    with pytest.raises(BadRow, match="int is expected, got bool"):
        required({"key": True}, "key", int)

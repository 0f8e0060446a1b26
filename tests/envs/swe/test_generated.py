from __future__ import annotations

import pytest

from envs.swe.env import SweEnv
from envs.swe.generated import world
from envs.swe.generated.running import load, outcome
from envs.swe.mutations import REMOVED_BODY
from envs.swe.replaying import same
from envs.swe.repository import files_of
from envs.types import Task

LEVELS = range(len(world.LEVELS))


def _modules(task: Task, fixes: dict[str, str] | None = None) -> dict[str, str]:
    package = task.data["package"]
    files = {path: data.decode() for path, data in files_of(task).items()}
    for path, text in (fixes or {}).items():
        files[path] = text
    names = [p.removeprefix(f"{package}/").removesuffix(".py") for p in files if p.startswith(f"{package}/")]
    return {name: files[f"{package}/{name}.py"] for name in sorted(names, key=lambda n: n == "reports")}


def _repaired(task: Task, which: str) -> dict[str, str]:
    """Each broken file with its function put back, or with a near miss in its place."""
    files = {}
    for path, edits in task.answer["edits"].items():
        text = files_of(task)[path].decode()
        for edit in edits:
            assert text.count(edit["old"]) == 1
            text = text.replace(edit["old"], edit["new"] if which == "new" else edit["wrong"][0])
        files[path] = text
    return files


@pytest.mark.parametrize("level", LEVELS)
def test_probes_tell_the_bug_from_the_original(level: int) -> None:
    for task in SweEnv.tasks("train", 3, 11, level=level):
        right, broken = load(_modules(task, _repaired(task, "new"))), load(_modules(task))
        for name, probes in task.answer["probes"].items():
            module, _, function = name.removeprefix(task.data["package"] + ".").partition(":")
            assert len(probes) >= 5
            telling = 0
            for probe in probes:
                args = tuple(world.decode(arg) for arg in probe["args"])
                assert outcome(getattr(right[module], function), args) == probe["expected"]
                telling += outcome(getattr(broken[module], function), args) != probe["expected"]
            assert telling >= 3


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_its_bugs_and_hides_the_tests_that_fail(level: int) -> None:
    for task in SweEnv.tasks("test", 2, 5, level=level):
        kinds = task.metadata["bugs"]
        assert [kind == REMOVED_BODY for kind in kinds] == list(world.LEVELS[level].bugs)
        visible = "\n".join(data.decode() for data in files_of(task).values())
        for node in task.answer["fail_to_pass"]:
            assert f"def {node.partition('::')[2]}(" not in visible
        for node in task.answer["pass_to_pass"]:
            assert f"def {node.partition('::')[2]}(" in visible
        for path in task.answer["edits"]:
            assert path not in task.prompt[0]["content"]


def test_splits_share_neither_package_nor_function() -> None:
    owners: dict[str, str] = {}
    for split in ("train", "validation", "test"):
        for task in SweEnv.tasks(split, 4, 0):
            docstrings = [
                block.split('"""')[0]
                for data in files_of(task).values()
                for block in data.decode().split('    """')[1:]
            ]
            for key in (task.data["package"], *docstrings):
                if not key.startswith(("Figures that", "Run a report", "\n")) and len(key) > 3:
                    assert owners.setdefault(key, split) == split


def test_the_same_arguments_give_the_same_task() -> None:
    first = SweEnv.tasks("train", 2, 7)
    world.make_task.cache_clear()
    assert SweEnv.tasks("train", 2, 7) == first


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="level is 0 to 3"):
        SweEnv.tasks("train", 1, 0, level=4)


def test_a_result_of_another_type_is_not_the_same() -> None:
    expected = {"value": 1, "args": [[1]]}
    assert same(expected, {"output": '{"args": [[1]], "value": 1}'})
    for output in (
        '{"value": true, "args": [[1]]}',
        '{"value": 1, "args": []}',
        '{"value": 1}',
        "1",
        "[",
        "",
    ):
        assert not same(expected, {"output": output})
    assert same({"raised": "KeyError"}, {"output": '{"raised": "KeyError"}'})
    assert not same({"raised": "KeyError"}, {"output": '{"raised": "ValueError"}'})
    for broken in (None, 1, {}, {"output": None}, {"error": "timeout"}):
        assert not same(expected, broken)

from __future__ import annotations

from pathlib import Path

import pytest

from agent_rl.scaffold import files, write
from envs.checker import check


def test_what_is_written_is_sound_and_short(tmp_path: Path) -> None:
    environment, test = write("my_env", tmp_path / "new")
    assert (environment.name, test.name) == ("my_env.py", "test_my_env.py")
    source = environment.read_text()
    assert sum(bool(line.strip()) for line in source.splitlines()) <= 40
    assert 'id = "my-env-v1"' in source
    report = check(f"{environment}:MyEnv", n=2, resets=5)
    assert report.passed, report.text()
    compile(test.read_text(), str(test), "exec")
    assert f"{environment.name}')}}:MyEnv" in test.read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "test_safes.py").write_text("mine")
    with pytest.raises(FileExistsError, match="is there already: choose another name"):
        write("safes", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["test_safes.py"]


@pytest.mark.parametrize("name", ["", "1st", "My", "a b", "../x", "class", "x/y"])
def test_a_name_is_a_module(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case letters"):
        files(name)


def test_dashes_are_understood() -> None:
    assert list(files("my-env")) == ["my_env.py", "test_my_env.py"]

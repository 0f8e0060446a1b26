from __future__ import annotations

import pytest

from envs.swe.patch import Patch, fitting, is_protected, split

PROTECTED = [
    "tests/test_a.py", "tests/data.json", "package/tests/x.py", "test/a.txt", "test_a.py", "package/a_test.py",
    "conftest.py", "package/conftest.py", "pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml",
    "sitecustomize.py", "package/usercustomize.py", "a.pth", "package/x.so", "package/x.pyc", "pytest.py",
    "_pytest/__init__.py", "pluggy/x.py", "package.egg-info/entry_points.txt", ".git/hooks/pre-commit",
]  # fmt: skip
FREE = [
    "package/a.py",
    "README.md",
    "package/testing.py",
    "src/package/latest.py",
    "contest.py",
    "package/data.json",
]


@pytest.mark.parametrize("path", PROTECTED)
def test_what_decides_how_tests_run_is_protected(path: str) -> None:
    assert is_protected(path)


@pytest.mark.parametrize("path", FREE)
def test_source_is_not_protected(path: str) -> None:
    assert not is_protected(path)
    assert is_protected(path, [path])


def test_a_patch_adds_changes_and_deletes() -> None:
    patch = split({"a.py": b"2\n", "b.py": None, "c.py": b"3", "tests/t.py": b"", "hidden": b""}, ["hidden"])
    assert patch.dropped == ("hidden", "tests/t.py")
    before = {"a.py": b"1\n", "b.py": b"x\n", "tests/t.py": b"t"}
    assert patch.apply(before) == {"a.py": b"2\n", "c.py": b"3", "tests/t.py": b"t"}
    diff = patch.diff(before)
    for line in ("-1\n", "+2\n", "-x\n", "+3\n", "+++ b/c.py\n"):
        assert line in diff
    assert patch.digest() != Patch({"a.py": b"2\n"}).digest()


def test_a_file_in_the_place_of_a_folder_gives_way() -> None:
    files = {"tests": b"", "tests/test_a.py": b"1", "a/b": b"", "a/b/c": b"2", "d": b"3"}
    assert fitting(files) == {"tests/test_a.py": b"1", "a/b/c": b"2", "d": b"3"}

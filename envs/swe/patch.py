"""What an agent changed: taken from its workspace by the host, with what it must not change left out."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from envs.swe.kit import PACKAGES

MAX_FILES, MAX_BYTES = 200, 2 << 20
"""Of one patch: files that differ, and bytes of their new contents."""
_FOLDERS = frozenset({"tests", "test", ".git", "__pycache__", ".pytest_cache", ".hypothesis"})
_NAMES = frozenset(
    {
        "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
        "setup.py", "pyproject.toml", "noxfile.py", "sitecustomize.py", "usercustomize.py", "pyvenv.cfg",
    }
)  # fmt: skip
_ENDINGS = (".pth", ".egg-link", ".pyc", ".pyo", ".so", ".pyd")
_TEST_FILE = re.compile(r"(test_.*|.*_tests?|tests?)\.py")
_METADATA = re.compile(r".*\.(dist|egg)-info")


@dataclass(frozen=True, slots=True)
class Patch:
    """New contents by path relative to the repository, None for what was deleted; and the paths that were left out."""

    changes: Mapping[str, bytes | None] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def apply(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """The files after the patch."""
        patched = {**files, **self.changes}
        return fitting({path: data for path, data in patched.items() if data is not None})

    def diff(self, files: Mapping[str, bytes]) -> str:
        """The patch as a unified diff, for people."""
        parts: list[str] = []
        for path in sorted(self.changes):
            old, new = (_lines(data) for data in (files.get(path), self.changes[path]))
            parts += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
        return "".join(line if line.endswith("\n") else line + "\n" for line in parts)

    def digest(self) -> str:
        """A hash of what it does."""
        found = hashlib.sha256()
        for path in sorted(self.changes):
            data = self.changes[path]
            found.update(repr((path, None if data is None else hashlib.sha256(data).hexdigest())).encode())
        return found.hexdigest()


def fitting(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files without those in whose place a folder of others is needed: nobody's patch may stop the grader."""
    folders = {path[:at] for path in files for at, mark in enumerate(path) if mark == "/"}
    return {path: data for path, data in files.items() if path not in folders}


def is_protected(path: str, trusted: Iterable[str] = ()) -> bool:
    """Whether a path decides how tests run or which: such changes never reach the grader.

    `trusted` are paths that grading itself writes.
    """
    *folders, name = path.split("/")
    top = path.split("/", 1)[0]
    return (
        path in set(trusted)
        or not _FOLDERS.isdisjoint(folders)
        or any(_METADATA.fullmatch(folder) for folder in folders)
        or name in _NAMES
        or name.endswith(_ENDINGS)
        or _TEST_FILE.fullmatch(name) is not None
        or top.removesuffix(".py") in PACKAGES
    )


def split(changes: Mapping[str, bytes | None], trusted: Iterable[str]) -> Patch:
    """A patch of the changes that count; the others are named only."""
    known = frozenset(trusted)
    dropped = tuple(sorted(path for path in changes if is_protected(path, known)))
    return Patch({path: data for path, data in changes.items() if path not in dropped}, dropped)


def _lines(data: bytes | None) -> list[str]:
    return data.decode("utf-8", "replace").splitlines(keepends=True) if data is not None else []

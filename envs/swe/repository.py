"""Where things lie in a sandbox of this family, and the files that a task begins with."""

from __future__ import annotations

from collections.abc import Mapping

from envs.errors import TaskError
from envs.swe.patch import is_protected
from envs.swe.sdists import read_sdist
from envs.types import Task
from sandbox.files import WORKSPACE

REPO = "repo"
"""The repository, relative to the workspace."""
KIT = ".kit/pytest.zip"
HOME = f"{WORKSPACE}/{REPO}"


def files_of(task: Task) -> dict[str, bytes]:
    """The repository as the agent finds it, by path relative to its root: an archive, if any, and `data.files` over it.

    Raises:
        TaskError: the task names no files, or its archive is not there.
    """
    files = task.data.get("files")
    if not isinstance(files, Mapping) or not files:
        raise TaskError(f"task {task.id} cannot be run: data.files holds no file")
    found = dict(archive_of(task))
    for path, text in files.items():
        if text is None:
            found.pop(str(path), None)
        else:
            found[str(path)] = str(text).encode("utf-8", "surrogatepass")
    return found


def archive_of(task: Task) -> Mapping[str, bytes]:
    """The files of the source archive that a task is made from; none for a generated task."""
    given = task.data.get("sdist")
    if given is None:
        return {}
    return read_sdist(str(given["path"]), str(given["sha256"]))


def protected_files(task: Task) -> dict[str, bytes]:
    """What of the archive no patch may change: its tests and configuration, the hidden ones included."""
    return {path: data for path, data in archive_of(task).items() if is_protected(path)}


def roots_of(task: Task) -> list[str]:
    """Folders of the repository that Python imports from, relative to its root."""
    return [str(root) for root in task.data.get("roots", ["."])]


def placed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files by path relative to the workspace."""
    return {f"{REPO}/{path}": data for path, data in files.items()}


def import_paths(task: Task) -> list[str]:
    """The absolute folders of `roots_of`."""
    return absolute(roots_of(task))


def absolute(roots: list[str]) -> list[str]:
    """Folders of the repository as a program in the sandbox sees them."""
    return [HOME if root == "." else f"{HOME}/{root}" for root in roots]

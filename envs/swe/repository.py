"""Where things lie in a sandbox of this family, and the files that a task begins with."""

from __future__ import annotations

from collections.abc import Mapping

from envs.errors import TaskError
from envs.types import Task
from sandbox.files import WORKSPACE

REPO = "repo"
"""The repository, relative to the workspace."""
KIT = ".kit/pytest.zip"
HOME = f"{WORKSPACE}/{REPO}"


def files_of(task: Task) -> dict[str, bytes]:
    """The repository as the agent finds it, by path relative to its root.

    Raises:
        TaskError: the task's data name no files.
    """
    files = task.data.get("files")
    if not isinstance(files, Mapping) or not files:
        raise TaskError(f"task {task.id} cannot be run: data.files holds no file")
    return {str(path): str(text).encode("utf-8", "surrogatepass") for path, text in files.items()}


def roots_of(task: Task) -> list[str]:
    """Folders of the repository that Python imports from, relative to its root."""
    return [str(root) for root in task.data.get("roots", ["."])]


def placed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same files by path relative to the workspace."""
    return {f"{REPO}/{path}": data for path, data in files.items()}


def import_paths(task: Task) -> list[str]:
    """The absolute folders of `roots_of`."""
    return [HOME if root == "." else f"{HOME}/{root}" for root in roots_of(task)]

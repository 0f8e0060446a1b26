"""The tool `edit`: replace a text, insert lines, create a file, undo."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from envs.swe import tools
from sandbox.base import Sandbox
from tools.errors import ToolError

Command = Literal["replace", "insert", "create", "undo"]
History = Mapping[str, tuple[str | None, ...]]
"""Earlier texts of each edited file, newest last; None where there was none. Immutable: snapshots share it."""
EMPTY: History = MappingProxyType({})
MAX_UNDO = 20
_CONTEXT = 3


def edit(
    box: Sandbox, history: History, command: Command, path: str, old: str, new: str, line: int
) -> tuple[str, History]:
    """Do one edit; what the agent reads, and the history after it.

    Raises:
        ToolError: the edit does not fit the file.
    """
    where = tools.beneath(path)
    if command == "undo":
        return _undo(box, history, path, where)
    if command == "create":
        return _create(box, history, path, where, new)
    text = tools.read(box, path)
    if command == "replace":
        changed, at = _replaced(text, path, old, new)
    else:
        changed, at = _inserted(text, new, line)
    tools.write(box, path, changed)
    lines = changed.splitlines()
    until = min(len(lines), at + new.count("\n") + _CONTEXT)
    shown = [f"{n:>5}  {lines[n - 1]}" for n in range(max(1, at - _CONTEXT), until + 1)]
    return f"edited {path}:\n" + "\n".join(shown), _noted(history, where, text)


def _replaced(text: str, path: str, old: str, new: str) -> tuple[str, int]:
    if not old:
        raise ToolError("replace needs the text `old`; to add lines use insert, for a new file create")
    found = text.count(old)
    if found != 1:
        problem = "does not occur" if found == 0 else f"occurs {found} times"
        raise ToolError(
            f"`old` must occur once in {path!r:.200}, it {problem}: copy it exactly, with more lines around"
        )
    return text.replace(old, new), text[: text.index(old)].count("\n") + 1


def _inserted(text: str, new: str, line: int) -> tuple[str, int]:
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise ToolError(f"line is 0 (the beginning) to {len(lines)} (the end), got {line}")
    if line and not lines[line - 1].endswith("\n"):
        lines[line - 1] += "\n"
    added = new if new.endswith("\n") or line == len(lines) else new + "\n"
    return "".join([*lines[:line], added, *lines[line:]]), line + 1


def _create(box: Sandbox, history: History, path: str, where: str, new: str) -> tuple[str, History]:
    try:
        before: str | None = tools.read(box, path)
    except ToolError:
        before = None
    tools.write(box, path, new)
    return f"wrote {path} ({len(new.splitlines())} lines)", _noted(history, where, before)


def _undo(box: Sandbox, history: History, path: str, where: str) -> tuple[str, History]:
    earlier = history.get(where, ())
    if not earlier:
        raise ToolError(f"nothing to undo in {path!r:.200}")
    if earlier[-1] is None:
        tools.remove(box, path)
    else:
        tools.write(box, path, earlier[-1])
    return f"undid the last edit of {path}", MappingProxyType({**history, where: earlier[:-1]})


def _noted(history: History, where: str, before: str | None) -> History:
    return MappingProxyType({**history, where: (*history.get(where, ()), before)[-MAX_UNDO:]})

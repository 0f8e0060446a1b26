"""Reads what a model should know about a tool from its docstring: first paragraph, Google-style `Args:`."""

from __future__ import annotations

import inspect
import re

_ARGUMENT = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SECTION = re.compile(r"^[A-Z]\w*( \w+)?:\s*$")


def summary(doc: str) -> str:
    """The first paragraph on one line; "" when it is a section such as `Args:`."""
    paragraph = inspect.cleandoc(doc).split("\n\n", 1)[0]
    lines = paragraph.splitlines()
    cut = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    return " ".join(" ".join(lines[:cut]).split())


def arguments(doc: str) -> dict[str, str]:
    """Description of each parameter in the `Args:` section, continuation lines joined by a space."""
    lines = inspect.cleandoc(doc).splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() in ("Args:", "Arguments:")), None)
    if start is None:
        return {}
    found: dict[str, list[str]] = {}
    indent: int | None = None
    current: list[str] = []
    for line in lines[start + 1 :]:
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            break
        indent = depth if indent is None else indent
        match = _ARGUMENT.match(line.strip()) if depth == indent else None
        if match:
            current = found.setdefault(match[1].lstrip("*"), [])
            current.append(match[2])
        else:
            current.append(line.strip())
    return {name: " ".join(" ".join(parts).split()) for name, parts in found.items()}

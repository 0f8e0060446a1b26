"""How a model writes a tool call, and how it reads tools and results: one format a file."""

from __future__ import annotations

import difflib
from importlib import import_module

from tools.formats.base import ParsedAction, ToolFormat

FORMATS = {
    "hermes": "tools.formats.hermes:HermesFormat",
    "pythonic": "tools.formats.pythonic:PythonicFormat",
}


def get(name: str) -> ToolFormat:
    """The format of this name, or at this dotted path (`package.module:Class`).

    Raises:
        ValueError: no format has this name.
    """
    path = FORMATS.get(name, name)
    if ":" not in path:
        near = difflib.get_close_matches(name, FORMATS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        choices = ", ".join(FORMATS)
        raise ValueError(
            f"tool_format must be one of {choices} or 'package.module:Class', got {name!r}.{hint}"
        )
    module, _, attribute = path.partition(":")
    built = getattr(import_module(module), attribute)()
    if not isinstance(built, ToolFormat):
        raise ValueError(f"tool_format {name!r} must name a ToolFormat, got {type(built).__name__}")
    return built


__all__ = ["FORMATS", "ParsedAction", "ToolFormat", "get"]

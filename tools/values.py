"""Which argument values a tool accepts: JSON values that every tool, database and file can hold.

A decoder of a model's text can produce more than that: `1e400` becomes infinity, `"\\ud800"` a lone surrogate
that no encoder writes, and a number of a thousand digits overflows SQLite. They are refused here, once, as
the model's mistake, so that no tool needs to think of them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from tools.errors import ToolError

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1


def shown(value: object, limit: int = 80) -> str:
    """A value as the model wrote it (JSON), clipped to `limit` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        if well_formed(text) != text:
            text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined and each lone surrogate replaced by U+FFFD: it can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check(arguments: dict[str, Any]) -> None:
    """Accept JSON values whose numbers are finite and fit 64 bits and whose text can be encoded.

    Raises:
        ToolError: names the argument, the rule and the value. It is the model's mistake.
    """
    for name, argument in arguments.items():
        stack: list[tuple[Any, int]] = [(name, 0), (argument, 1)]
        while stack:
            value, depth = stack.pop()
            fault = _fault(value, depth)
            if fault:
                raise ToolError(f"argument {shown(name)}: {fault}")
            if isinstance(value, dict):
                stack += [(item, depth + 1) for pair in value.items() for item in pair]
            elif isinstance(value, list | tuple):
                stack += [(item, depth + 1) for item in value]


def _fault(value: Any, depth: int) -> str | None:
    if depth > MAX_DEPTH:
        return f"values may be nested {MAX_DEPTH} deep, this one is deeper; pass a flatter value"
    if isinstance(value, str):
        if well_formed(value) != value:
            return f"text must be valid Unicode, got {shown(value)}; leave out surrogate escapes"
    elif isinstance(value, bool) or value is None or isinstance(value, dict | list | tuple):
        return None
    elif isinstance(value, int):
        if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
            size = f"{value.bit_length()} bits"
            return f"integers must fit 64 bits, got one of {size}; pass a smaller number or text"
    elif isinstance(value, float):
        if not math.isfinite(value):
            return f"numbers must be finite, got {value}; pass a finite number"
    else:
        return (
            f"values must be JSON (text, number, true, false, null, list, object), got {type(value).__name__}"
        )
    return None

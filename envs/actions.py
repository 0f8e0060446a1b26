"""Reads whatever a policy hands in as an action; the model's mistakes become `parse_errors`."""

from __future__ import annotations

import math
from typing import Any

from tools.types import Message, ToolCall

_MAX_DEPTH = 100
_MAX_INT_BITS = 4096  # Python refuses to print integers of more than 4300 digits


def read_action(action: Message | str) -> Message:
    """Return a private, well-formed copy of an action.

    Plain text is parsed by the `hermes` format. A call without a name, or whose arguments are not an object,
    is moved to `parse_errors`. Lone surrogates, which JSON can spell and no file or database accepts, become
    U+FFFD.

    Raises:
        TypeError: not text and not a mapping: the caller's mistake.
        ValueError: a message of another role than assistant: the caller's mistake.
    """
    if isinstance(action, str):
        return _parse_text(_clean_text(action))
    if not isinstance(action, dict):
        raise TypeError(f"an action is an assistant message or text, got {type(action).__name__}")
    if action.get("role") != "assistant":
        raise ValueError(f"an action has role 'assistant', got {action.get('role')!r}")
    raw: dict[str, Any] = dict(action)
    errors = [str(e) for e in raw.get("parse_errors") or []]
    content = raw.get("content")
    if content is None:
        content = ""
    elif not isinstance(content, str):
        errors.append(f"content must be text, got {type(content).__name__}")
        content = ""
    calls = _read_calls(raw.get("tool_calls"), errors)
    return _message(_clean_text(content), calls, [_clean_text(e) for e in errors])


def _parse_text(text: str) -> Message:
    from tools import formats

    parsed = formats.get("hermes").parse(text)
    errors = list(parsed.parse_errors)
    calls = _read_calls(parsed.tool_calls, errors)
    return _message(parsed.content, calls, errors)


def _message(content: str, calls: list[ToolCall], errors: list[str]) -> Message:
    message: Message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    if errors:
        message["parse_errors"] = errors
    return message


def _read_calls(raw: Any, errors: list[str]) -> list[ToolCall]:
    if raw is None:
        return []
    if not isinstance(raw, list | tuple):
        errors.append(f"tool_calls must be a list, got {type(raw).__name__}")
        return []
    calls: list[ToolCall] = []
    for number, call in enumerate(raw):
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        arguments = function.get("arguments", {}) if isinstance(function, dict) else None
        if not isinstance(name, str) or not name:
            errors.append(f"tool call {number + 1} has no function name")
        elif not isinstance(arguments, dict):
            errors.append(
                f"the arguments of {_clean_text(name)!r} must be an object, got {type(arguments).__name__}"
            )
        else:
            call_id = call.get("id")
            calls.append(
                {
                    "id": _clean_text(call_id) if isinstance(call_id, str) and call_id else f"call_{number}",
                    "type": "function",
                    "function": {"name": _clean_text(name), "arguments": _clean(arguments, 0)},
                }
            )
    return calls


def _clean(value: Any, depth: int) -> Any:
    """Copy a JSON value with clean text; what JSON cannot say becomes text, too deep nesting is cut."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, dict):
        return {_clean_text(str(k)): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v, depth + 1) for v in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_INT_BITS else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float) and math.isfinite(value):
        return value
    return _clean_text(str(value))


def _clean_text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

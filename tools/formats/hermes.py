r"""The Hermes format, also Qwen's: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.

    Let me look.                                   content
    <tool_call>
    {"name": "run_sql", "arguments": {"sql": "SELECT '</tool_call>'"}}
    </tool_call>                                   the tag inside the string is data: a decoder finds the end

Several calls a turn. Whatever stands in `<think>...</think>` at the beginning is thinking and calls nothing.
A malformed call stays in `content` and is reported; a `<tool_response>` that the model writes is content.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from tools.formats.base import MAX_PARSE_ERRORS, ParsedAction, excerpt, tool_call
from tools.types import Message, ToolCall, ToolResult, ToolSchema
from tools.values import well_formed

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FORM = '<tool_call>\n{"name": "tool", "arguments": {"argument": "value"}}\n</tool_call>'
_TAGS = re.compile(r"<(?=/?tool_(?:call|response))", re.IGNORECASE)
_SPACE = " \t\r\n"

_SYSTEM = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{signatures}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


class HermesFormat:
    """JSON between tags, as Hermes and Qwen models were trained to write it."""

    name = "hermes"

    def system_text(self, tools: Sequence[ToolSchema]) -> str:
        """Qwen's wording with one JSON signature a line."""
        if not tools:
            return ""
        return _SYSTEM.format(signatures="\n".join(dumps({"type": "function", "function": t}) for t in tools))

    def render_calls(self, message: Message, tools: Sequence[ToolSchema] = ()) -> str:
        """Content, then each call on lines of its own."""
        parts = [message["content"]] if message["content"] else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            body = dumps({"name": function["name"], "arguments": function["arguments"]})
            parts.append(f"{_OPEN}\n{body}\n{_CLOSE}")
        return "\n".join(parts)

    def render_result(self, result: ToolResult) -> str:
        """The content between `<tool_response>` tags."""
        return f"<tool_response>\n{self.escape(result['content'])}\n</tool_response>"

    def escape(self, text: str) -> str:
        """Put a space into each of the format's tags: `<tool_call>` becomes `< tool_call>`."""
        return _TAGS.sub("< ", text)

    def parse(self, text: str, tools: Sequence[ToolSchema] = ()) -> ParsedAction:
        """Find the calls with a JSON decoder; resume after the next tag where one is malformed."""
        calls: list[ToolCall] = []
        errors: list[str] = []
        content: list[str] = []
        kept = 0  # text before this index is in `content` or in `calls`
        position = _after_thinking(text)
        while True:
            start = text.find(_OPEN, position)
            stray = text.find(_CLOSE, position, start if start >= 0 else len(text))
            if stray >= 0:
                errors.append(f"{_CLOSE} stands without {_OPEN} before it; write {_FORM}")
            if start < 0 or len(errors) >= MAX_PARSE_ERRORS:
                break
            try:
                name, arguments, end = _read_call(text, start + len(_OPEN))
            except _MalformedError as error:
                errors.append(f"{error}; write {_FORM}")
                position = _resume(text, start + len(_OPEN))
            else:
                calls.append(tool_call(len(calls), name, arguments))
                content.append(text[kept:start])
                position = kept = end
        content.append(text[kept:])
        return ParsedAction("".join(content).strip(), calls, errors)


class _MalformedError(ValueError):
    """The text after an opening tag is not a call."""


def _after_thinking(text: str) -> int:
    """Where acting begins: after the thinking block, whose opening tag may be in the generation prompt."""
    opened = text.lstrip().startswith("<think>")
    end = text.find("</think>")
    if end < 0:
        return len(text) if opened else 0
    return end + len("</think>") if opened or text.find(_OPEN, 0, end) < 0 else 0


def _resume(text: str, position: int) -> int:
    """After the closing tag of a malformed call, or at the next opening tag if that comes first."""
    close, following = text.find(_CLOSE, position), text.find(_OPEN, position)
    if close < 0:
        return following if following >= 0 else len(text)
    return following if 0 <= following < close else close + len(_CLOSE)


def _skip_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _read_call(text: str, position: int) -> tuple[str, dict[str, Any], int]:
    start = _skip_space(text, position)
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _MalformedError(
            f"a call must be valid JSON, got {excerpt(text, start)} ({_reason(error)})"
        ) from None
    except RecursionError:
        raise _MalformedError("a call must be flat JSON, got one that is nested too deep") from None
    except ValueError as error:
        raise _MalformedError(f"a call must be valid JSON, got {excerpt(text, start)} ({error})") from None
    name, arguments = _read_object(value, text, start)
    close = _skip_space(text, end)
    if not text.startswith(_CLOSE, close):
        found = excerpt(text, close) if close < len(text) else "the end of the text"
        raise _MalformedError(f"the JSON of a call must be followed by {_CLOSE}, got {found}")
    return name, arguments, close + len(_CLOSE)


def _reason(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return "it ends in the middle"
    return f"{error.msg} at {excerpt(error.doc, error.pos, 20)}"


def _read_object(value: Any, text: str, start: int) -> tuple[str, dict[str, Any]]:
    if not isinstance(value, dict):
        raise _MalformedError(f"a call must be a JSON object, got {excerpt(text, start)}")
    extra = [key for key in value if key not in ("name", "arguments")]
    if extra:
        raise _MalformedError(f'a call has the keys "name" and "arguments", got {excerpt(repr(extra[0]), 0)}')
    name, arguments = value.get("name"), value.get("arguments", {})
    if not isinstance(name, str) or not name:
        raise _MalformedError(f'"name" must be the name of a tool, got {excerpt(repr(name), 0)}')
    if not isinstance(arguments, dict):
        raise _MalformedError(f'"arguments" must be a JSON object, got {excerpt(repr(arguments), 0)}')
    return name, arguments


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"numbers must be finite, got {text[:40]}")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


# Raw line breaks inside strings are accepted: models write programs that way.
_DECODER = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_no_constant)


def dumps(value: Any) -> str:
    """JSON as chat templates write it: keys in order, characters as they are where they can be encoded."""
    text = json.dumps(value, ensure_ascii=False)
    return text if well_formed(text) == text else json.dumps(value)

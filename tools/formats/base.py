"""The seam between what a model writes and what a toolbox runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tools.types import Message, ToolCall, ToolResult, ToolSchema

MAX_PARSE_ERRORS = 16
"""A parser gives up after this many malformed calls, so that hostile text costs linear time."""


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """What an assistant's text says: `content` is all of it that is not a well-formed call."""

    content: str
    tool_calls: list[ToolCall] = field(default_factory=list)
    parse_errors: list[str] = field(default_factory=list)
    """One message a malformed call, written for the model: rule, actual text, valid form."""


@runtime_checkable
class ToolFormat(Protocol):
    """One way of writing tools, calls and results as text. Stateless.

    `tools` gives names and parameter order where a format needs them; every format takes it.
    """

    @property
    def name(self) -> str:
        """The name in the configuration."""
        ...

    def system_text(self, tools: Sequence[ToolSchema]) -> str:
        """What the system prompt says about the tools; "" without tools."""
        ...

    def render_calls(self, message: Message, tools: Sequence[ToolSchema] = ()) -> str:
        """An assistant message as the model would write it: content first, then the calls."""
        ...

    def render_result(self, result: ToolResult) -> str:
        """A result as the model reads it; its content cannot close or forge the format's tags."""
        ...

    def escape(self, text: str) -> str:
        """Untrusted text without the format's tags, for templates that wrap results themselves."""
        ...

    def parse(self, text: str, tools: Sequence[ToolSchema] = ()) -> ParsedAction:
        """Read an assistant's text. Never raises; calls are named "call_0", "call_1", ..."""
        ...


def tool_call(index: int, name: str, arguments: dict[str, Any]) -> ToolCall:
    """The call with the id that its place in the message gives it."""
    return {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


def excerpt(text: str, start: int, limit: int = 60) -> str:
    """A quoted piece of the text from `start`, for an error message."""
    piece = text[start : start + limit]
    return repr(piece + ("..." if len(text) > start + limit else ""))

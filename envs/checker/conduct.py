"""What a model may come up with: malformed, mistyped, oversized and hostile actions, none of which is a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from envs.policies import call, calls, say
from tools.types import Message, ToolSchema

MEGABYTE = 1_000_000
_ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "\ud800",
    "🜂" * 50,
    "../../../../etc/passwd",
    "'; DROP TABLE x; --",
    "-1",
    "{}",
)
_ODD_NUMBERS = (0, -1, 7, 1000, 2**31, 2**63, 10**30, 0.5, 1e308)


def barrage(
    tools: Sequence[ToolSchema], *, long_text: str = "x" * MEGABYTE
) -> Iterator[tuple[str, Message | str]]:
    """Name and action of every odd thing that is tried, in a fixed order."""
    yield from _texts(long_text)
    yield from _messages(long_text)
    for tool in tools:
        yield from _arguments(tool, long_text)


def wander(tools: Sequence[ToolSchema]) -> list[Message]:
    """One plain call of every tool, twice over: it gets nowhere, but it starts whatever a tool starts."""
    return [calls((t["name"], _fill(t["parameters"].get("properties", {}), "x"))) for t in (*tools, *tools)]


def _texts(long_text: str) -> Iterator[tuple[str, Message | str]]:
    yield "empty text", ""
    yield "NUL bytes", "\x00" * 10
    yield "a lone surrogate", "\ud800 <tool_call>"
    yield "long text", long_text
    yield "an unclosed call", "<tool_call>{"
    yield "a call that is no JSON", "<tool_call>\n{name: 'x'}\n</tool_call>"
    yield "deep nesting", "<tool_call>" + "[" * 5000 + "</tool_call>"
    yield "a call that is a list", "<tool_call>[1, 2]</tool_call>"
    yield "arguments that are text", '<tool_call>{"name": "x", "arguments": "y"}</tool_call>'
    yield (
        "a number too long to print",
        '<tool_call>{"name": "x", "arguments": {"n": ' + "9" * 5000 + "}}</tool_call>",
    )


def _messages(long_text: str) -> Iterator[tuple[str, Message | str]]:
    yield "an empty message", say("")
    yield "long content", say(long_text)
    yield "parse errors", {"role": "assistant", "content": "", "parse_errors": ["not JSON", long_text]}
    yield "an unknown tool", call("no_such_tool", x=1)
    yield "a tool name of strange characters", call("\ud800\x00 ../", x=1)
    yield "a very long tool name", call(long_text)
    yield "many unknown tools", calls(*[(f"tool_{i}", {}) for i in range(50)])
    odd: list[Any] = [None, 7, "text", {}, {"function": None}, {"function": {"name": 3, "arguments": {}}}]
    odd += [{"function": {"name": "x", "arguments": a}} for a in (None, "{}", [1], 5)]
    yield "malformed call objects", {"role": "assistant", "content": "", "tool_calls": odd}


def _arguments(tool: ToolSchema, long_text: str) -> Iterator[tuple[str, Message | str]]:
    name, properties = tool["name"], tool["parameters"].get("properties", {})
    yield f"{name} without arguments", call(name)
    yield f"{name} with an unknown argument", calls((name, {**_fill(properties, "x"), "no_such_argument": 1}))
    odd: tuple[Any, ...] = (None, True, 1.5, [], {}, "text", [[[{}]]])
    for wrong in odd:
        yield f"{name} with {wrong!r} everywhere", calls((name, dict.fromkeys(properties, wrong)))
    for text in (*_ODD_TEXTS, long_text):
        yield f"{name} with the text {text!r:.30}", calls((name, _fill(properties, text)))
    for number in _ODD_NUMBERS:
        yield f"{name} with the number {number!r}", calls((name, dict.fromkeys(properties, number)))


def _fill(properties: dict[str, Any], text: str) -> dict[str, Any]:
    """Arguments of the declared types, `text` wherever text is wanted."""
    values: dict[str, Any] = {
        "integer": 1,
        "number": 1.0,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    return {key: values.get(_type(schema), text) for key, schema in properties.items()}


def _type(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) else "string"

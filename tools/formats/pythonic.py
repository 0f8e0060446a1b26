"""A compact format: one call a line, as Python would write it. `run_sql("SELECT 1")`

    I count the rows first.                  content
    run_sql("SELECT count(*) FROM t")        a call: a name at the start of a line, then "("
    [describe("t"), describe(table="u")]     several calls on a line, as other models write them

Arguments are literals, read without evaluating anything; positional ones take the order of the tool's schema.
A line that looks like a call and is not one is reported, unless its name is far from every tool's: then it is
prose. Malformed calls stay in `content`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from tools.formats.base import MAX_PARSE_ERRORS, ParsedAction, excerpt, tool_call
from tools.formats.literals import NAME, Call, LiteralError, read_call, skip_space, write
from tools.signature import signature
from tools.types import Message, ToolCall, ToolResult, ToolSchema

_MAX_DESCRIPTION = 80
MAX_ATTEMPTS = 64
"""Lines that may turn out not to be calls before the rest is content: hostile text costs linear time."""


class PythonicFormat:
    """The shortest text that names a tool and its arguments."""

    name = "pythonic"

    def system_text(self, tools: Sequence[ToolSchema]) -> str:
        """One line a tool: its signature and the first sentence of its description."""
        return "\n".join(f"{signature(t)} {_short(t['description'])}".rstrip() for t in tools)

    def render_calls(self, message: Message, tools: Sequence[ToolSchema] = ()) -> str:
        """Content, then one call a line; arguments are positional where `tools` gives their order."""
        order = _orders(tools)
        lines = [message["content"]] if message["content"] else []
        lines += [_write_call(call, order) for call in message.get("tool_calls", ())]
        return "\n".join(lines)

    def render_result(self, result: ToolResult) -> str:
        """The content alone: nothing marks a result, so nothing can forge one."""
        return result["content"]

    def escape(self, text: str) -> str:
        """The text itself: the format has no tags."""
        return text

    def parse(self, text: str, tools: Sequence[ToolSchema] = ()) -> ParsedAction:
        """Read the lines that begin with a call; the others are content."""
        order = _orders(tools)
        calls: list[ToolCall] = []
        errors: list[str] = []
        content: list[str] = []
        text = text.strip()
        position = _after_thinking(text)
        if position:
            content.append(text[:position])
            position += text.startswith("\n", position)
        attempts = MAX_ATTEMPTS
        while position < len(text):
            end = _line_end(text, position)
            if attempts and len(errors) < MAX_PARSE_ERRORS and _looks_like_call(text, position):
                try:
                    found, end = _read_line(text, position)
                    named = [(call.name, _arguments(call, order)) for call in found]
                    calls += [tool_call(len(calls) + i, *call) for i, call in enumerate(named)]
                    position = end + 1
                    continue
                except LiteralError as error:
                    attempts -= 1
                    end = _line_end(text, position)
                    if _is_meant(text, position, order):
                        where = excerpt(text[position:end], 0)
                        errors.append(f'{error} in {where}; write one call a line: name("text", 1)')
            content.append(text[position:end])
            position = end + 1
        return ParsedAction("\n".join(content).strip(), calls, errors)


def _after_thinking(text: str) -> int:
    """Where acting begins: after a thinking block, at the end of the text when that is not closed."""
    if not text.startswith("<think>"):
        return 0
    end = text.find("</think>")
    return len(text) if end < 0 else end + len("</think>")


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline


def _short(description: str) -> str:
    sentence = description.split(". ", 1)[0].split("\n", 1)[0]
    return sentence if len(sentence) <= _MAX_DESCRIPTION else f"{sentence[: _MAX_DESCRIPTION - 3]}..."


def _orders(tools: Sequence[ToolSchema]) -> dict[str, list[str]]:
    return {t["name"]: list(t["parameters"].get("properties", {})) for t in tools}


def _write_call(call: ToolCall, order: Mapping[str, Sequence[str]]) -> str:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    parts: list[str] = []
    rest = dict(arguments)
    for parameter in order.get(name, ()):
        if parameter not in rest:
            break
        parts.append(write(rest.pop(parameter)))
    parts += [f"{key}={write(value)}" for key, value in rest.items()]
    return f"{name}({', '.join(parts)})"


def _looks_like_call(text: str, position: int) -> bool:
    if text.startswith("[", position):
        position = skip_space(text, position + 1)
    match = NAME.match(text, position)
    return match is not None and text.startswith("(", match.end())


def _is_meant(text: str, position: int, order: Mapping[str, Sequence[str]]) -> bool:
    """Whether a malformed line is an attempt at a call: always, unless tools are known and none is near."""
    match = NAME.match(text, skip_space(text, position + 1) if text.startswith("[", position) else position)
    name = match[0][:80] if match else ""
    return not order or bool(difflib.get_close_matches(name, order, 1))


def _read_line(text: str, position: int) -> tuple[list[Call], int]:
    """The calls that begin at `position`, and the end of the line on which they end."""
    if not text.startswith("[", position):
        calls = [read_call(text, position)]
        end = calls[0].end
    else:
        calls = []
        end = skip_space(text, position + 1)
        while not text.startswith("]", end):
            calls.append(read_call(text, end))
            end = skip_space(text, calls[-1].end)
            if text.startswith(",", end):
                end = skip_space(text, end + 1)
            elif not text.startswith("]", end):
                raise LiteralError(f"expected ',' or ']' after a call, got {text[end : end + 20]!r}")
        end += 1
    line_end = _line_end(text, end)
    rest = text[end:line_end].strip()
    if rest and not rest.startswith("#"):
        raise LiteralError(f"nothing may follow a call on its line, got {rest[:40]!r}")
    return calls, line_end


def _arguments(call: Call, order: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Arguments by name; positional ones of a tool that is not known are named `argument_0`, ..."""
    parameters = order.get(call.name, [f"argument_{i}" for i in range(len(call.positional))])
    if len(call.positional) > len(parameters):
        raise LiteralError(
            f"{call.name} takes {len(parameters)} arguments ({', '.join(parameters)}), "
            f"got {len(call.positional)}"
        )
    arguments = dict(zip(parameters, call.positional, strict=False))
    twice = [name for name in call.named if name in arguments]
    if twice:
        raise LiteralError(f"argument {twice[0]!r} of {call.name} is given twice")
    return arguments | call.named

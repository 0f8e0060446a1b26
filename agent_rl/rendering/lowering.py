"""Messages in the shape that a given chat template can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent_rl.rendering.control_tokens import Neutralizer
from tools.formats import ToolFormat
from tools.types import Message, ToolCall, ToolResult, ToolSchema


@dataclass(frozen=True)
class Lowering:
    """What a template shows by itself, and how the tool format steps in where it does not."""

    tool_format: ToolFormat
    calls: bool
    """It writes tool calls, and in this format."""
    tools: bool
    results: bool
    system: bool
    user_twice: bool
    """It accepts two user messages in a row."""
    control_tokens: frozenset[str]
    ignore_case: bool = False
    """The tokenizer normalises text before it looks for control tokens."""

    @cached_property
    def untrusted(self) -> Neutralizer:
        """For what users and tools say."""
        return Neutralizer(self.control_tokens, ignore_case=self.ignore_case)

    @cached_property
    def own(self) -> Neutralizer:
        """For what the assistant says: the format's tags may be control tokens, and there they are meant."""
        call: ToolCall = {"id": "", "type": "function", "function": {"name": "a", "arguments": {}}}
        written = self.tool_format.render_calls({"role": "assistant", "content": "", "tool_calls": [call]})
        meant = {t for t in self.control_tokens if t in written or t in ("<think>", "</think>")}
        return Neutralizer(self.control_tokens - meant, ignore_case=self.ignore_case)

    def lower(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> list[dict[str, Any]]:
        """Messages for the template, control tokens neutralised; tools where the template ignores them."""
        lowered: list[dict[str, Any]] = []
        joins: list[str] = []  # how each message may be joined to its predecessor of the same kind
        for message in messages:
            new, join = self._lower_one(message)
            if lowered and join and joins[-1] == join and lowered[-1]["role"] == new["role"]:
                lowered[-1]["content"] += join + new["content"]
            else:
                lowered.append(new)
                joins.append(join)
        lowered = lowered if self.tools else self._with_tools(lowered, tools)
        return lowered if self.system else _without_system(lowered)

    def text(self, message: Message, tools: Sequence[ToolSchema]) -> str:
        """An assistant message as the model would write it."""
        return self.own.clean(self.tool_format.render_calls(message, tools))

    def _with_tools(self, lowered: list[dict[str, Any]], tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
        text = self.own.clean(self.tool_format.system_text(tools))
        if not text:
            return lowered
        opened = bool(lowered) and lowered[0]["role"] == "system"
        said = lowered[0]["content"] if opened else ""
        content = f"{said}\n\n{text}" if said else text
        return [{"role": "system", "content": content}, *lowered[opened:]]

    def _lower_one(self, message: Message) -> tuple[dict[str, Any], str]:
        role = message["role"]
        if role == "assistant":
            return self._lower_answer(message), ""
        content = self.untrusted.clean(message["content"])
        apart = "" if self.user_twice else "\n\n"
        if role != "tool":
            return {"role": role, "content": content}, apart if role == "user" else ""
        result: ToolResult = {
            "role": "tool",
            "content": content,
            "name": self.untrusted.clean(message.get("name", "")),
            "tool_call_id": message.get("tool_call_id", ""),
        }
        if self.results:
            return {**result, "content": self.tool_format.escape(content)}, ""
        return {"role": "user", "content": self.tool_format.render_result(result)}, apart or "\n"

    def _lower_answer(self, message: Message) -> dict[str, Any]:
        calls = message.get("tool_calls", [])
        if self.calls and calls:
            return {
                "role": "assistant",
                "content": self.own.clean(message["content"]),
                "tool_calls": self.own.clean_json(calls),
            }
        return {"role": "assistant", "content": self.text(message, ())}


def _without_system(lowered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """System messages become the opening of the next user message."""
    kept: list[dict[str, Any]] = []
    pending = ""
    for message in lowered:
        if message["role"] == "system":
            pending += f"{message['content']}\n\n"
        elif message["role"] == "user" and pending:
            kept.append({**message, "content": pending + message["content"]})
            pending = ""
        else:
            kept.append(message)
    return [*kept, {"role": "user", "content": pending.strip()}] if pending else kept

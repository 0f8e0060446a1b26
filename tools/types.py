"""The words that a model and its tools exchange: messages, tool calls, tool results.

They are `TypedDict`s in the shape that chat templates accept, so that a conversation can be handed to
`tokenizer.apply_chat_template` as it is. `arguments` is always a decoded object, never a JSON string.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Role = Literal["system", "user", "assistant", "tool"]


class ToolFunction(TypedDict):
    """Name and decoded arguments of one call."""

    name: str
    arguments: dict[str, Any]


class ToolCall(TypedDict):
    """One call that the model asked for; `id` is unique within its episode."""

    id: str
    type: Literal["function"]
    function: ToolFunction


class Message(TypedDict):
    """One message of a conversation.

    `parse_errors` appears only on assistant messages whose text held something that looks like a tool call
    and is not one; an environment answers each of them with an observation.
    """

    role: Role
    content: str
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]
    parse_errors: NotRequired[list[str]]


class ToolResult(TypedDict):
    """What a tool answered: a message of role `tool`."""

    role: Literal["tool"]
    content: str
    tool_call_id: str
    name: str


class ToolSchema(TypedDict):
    """A tool as the model sees it: `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]

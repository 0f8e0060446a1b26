"""Toolbox: the tools of one episode. Checks a call, runs it under a time limit, clips what comes back.

ToolCall -> known name? -> arguments valid? -> run in a worker thread -> text -> clip -> ToolResult
                └──────────────┴── the model's mistake: a ToolResult that starts with "error: "
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from tools import deadline, values
from tools.errors import ToolError
from tools.schema import Tool, tool
from tools.types import ToolCall, ToolResult, ToolSchema

MAX_OUTPUTS = 8
MAX_STORED_CHARS = 4_000_000


class Toolbox:
    """Validates, dispatches, limits time and clips output. Serves one call at a time."""

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]],
        *,
        timeout_s: float | None = 30.0,
        max_output_chars: int = 8000,
        on_timeout: Callable[[], None] | None = None,
        read_more: bool = False,
    ) -> None:
        """Collect tools.

        Args:
            tools: `Tool`s, or functions and bound methods marked by `@tool`.
            timeout_s: limit of one call unless the tool has its own; None means none.
            max_output_chars: longer outputs keep their head and tail.
            on_timeout: interrupts the world behind the tools when a call outlasts its limit.
            read_more: offer a tool of that name, which pages through what clipping left out.

        Raises:
            ValueError: two tools share a name, or `max_output_chars` is below 200.
        """
        if max_output_chars < 200:
            raise ValueError(
                f"max_output_chars must be at least 200 to hold head, tail and note, got {max_output_chars}"
            )
        self.timeout_s = timeout_s
        self.max_output_chars = max_output_chars
        self._on_timeout = on_timeout
        self._read_more = read_more
        self._outputs: dict[str, str] = {}
        self._stored = 0
        self._tools: dict[str, Tool] = {}
        for each in [*tools, *([self.read_more] if read_more else [])]:
            built = each if isinstance(each, Tool) else Tool.of(each)
            if built.name in self._tools:
                raise ValueError(
                    f"tool names are unique, but two tools are named {built.name!r}; pass @tool(name=...)"
                )
            self._tools[built.name] = built
        self._schemas = tuple(each.to_schema() for each in self._tools.values())

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as the model sees them."""
        return self._schemas

    def call(self, call: ToolCall) -> ToolResult:
        """Run one call and answer it.

        Returns:
            A message of role `tool`; the model's mistakes are answered by content starting with "error: ".

        Raises:
            ToolTimeout: the tool outlasted its limit and was interrupted.
            Exception: whatever else the tool raises, a bug of the environment.
        """
        name = str(call["function"]["name"])
        try:
            chosen = self._choose(name)
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, Mapping):
                raise ToolError(f"arguments must be an object, got {values.shown(arguments)}")
            value = deadline.run(
                chosen.function,
                chosen.validate(arguments),
                name=name,
                timeout_s=self.timeout_s if chosen.timeout_s is None else chosen.timeout_s,
                on_timeout=self._on_timeout,
            )
            content = text_of(value)
        except ToolError as error:
            content = f"error: {values.well_formed(str(error))}"
        if name != "read_more" or not self._read_more:
            content = self.clip(content)
        return {"role": "tool", "content": content, "tool_call_id": call["id"], "name": name}

    def clip(self, text: str) -> str:
        """Keep head and tail of a text longer than `max_output_chars`, with a note of what is missing."""
        if len(text) <= self.max_output_chars:
            return text
        space = self.max_output_chars - 120
        head, tail = space - space // 3, space // 3
        missing = len(text) - head - tail
        note = f"{missing} characters left out"
        if self._read_more:
            note += f'; read_more(handle="{self._store(text)}", offset={head}) shows them'
        return f"{text[:head]}\n[... {note} ...]\n{text[-tail:]}"

    @tool
    def read_more(self, handle: str, offset: Annotated[int, Field(ge=0)] = 0) -> str:
        """Read on in an output that was too long to show.

        Args:
            handle: named where the output was cut, such as "out1".
            offset: first character to show.
        """
        text = self._outputs.get(handle)
        if text is None:
            known = ", ".join(self._outputs) or "none"
            raise ToolError(f"handle must name a stored output ({known}), got {values.shown(handle)}")
        if offset >= len(text):
            raise ToolError(f"offset must be below {len(text)}, the length of {handle}, got {offset}")
        end = min(offset + self.max_output_chars - 120, len(text))
        rest = f"next offset={end}" if end < len(text) else "the end"
        return f"{text[offset:end]}\n[characters {offset} to {end} of {len(text)}; {rest}]"

    def outputs(self) -> dict[str, str]:
        """Stored outputs by handle, for a snapshot of the episode."""
        return dict(self._outputs)

    def load_outputs(self, outputs: Mapping[str, str]) -> None:
        """Continue from `outputs()` of the episode that this one was forked from."""
        self._outputs = dict(outputs)
        self._stored = max((int(handle.removeprefix("out")) for handle in outputs), default=0)

    def _choose(self, name: str) -> Tool:
        if name in self._tools:
            return self._tools[name]
        near = difflib.get_close_matches(name[:80], self._tools, 1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ToolError(
            f"no tool is named {values.shown(name)}.{hint} Tools: {', '.join(self._tools) or 'none'}"
        )

    def _store(self, text: str) -> str:
        self._stored += 1
        handle = f"out{self._stored}"
        self._outputs[handle] = text[:MAX_STORED_CHARS]
        while len(self._outputs) > MAX_OUTPUTS:
            del self._outputs[next(iter(self._outputs))]
        return handle


def text_of(value: object) -> str:
    """A tool's return value as text: strings as they are, None as "ok", bytes as UTF-8, the rest as JSON."""
    if value is None:
        return "ok"
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        return values.well_formed(value)
    return values.well_formed(json.dumps(value, ensure_ascii=False, default=str))

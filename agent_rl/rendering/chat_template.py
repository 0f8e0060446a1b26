"""What a model's chat template does, found by asking it: probes at construction, text afterwards.

A template is a program of the model's author. These facts are read off what it writes for dummy messages:

    <|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nM<|im_end|>\n<|im_start|>user\n...
                                  └── generation prompt ──┘ └─ stop ─┘└ tail: belongs to the next observation

It may also ignore tools, tool calls and results (then the tool format writes them into system text and
content, and a result becomes a user message), refuse a system message (then it opens the first user message) or
refuse two user messages in a row (then they become one).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_rl.rendering.control_tokens import special_tokens
from agent_rl.rendering.lowering import Lowering
from tools.formats import ToolFormat
from tools.types import Message, ToolSchema

_USER = {"role": "user", "content": "PROBE-USER"}
_MARK = "PROBE-ASSISTANT"
_ANSWER = {"role": "assistant", "content": _MARK}
_SCHEMA: ToolSchema = {
    "name": "probe_tool",
    "description": "PROBE-DESCRIPTION",
    "parameters": {"type": "object", "properties": {"probe_argument": {"type": "string"}}},
}


class ChatTemplate:
    """Renders messages as text, piece by piece. Pieces put together are what the template would write."""

    def __init__(self, tokenizer: Any, tool_format: ToolFormat) -> None:
        """Probe the template.

        Raises:
            ValueError: the tokenizer has no template, or it does not close assistant messages by one special
                token, or its generation prompt is not appended.
        """
        if not tokenizer.chat_template:
            raise ValueError(
                "a tokenizer needs a chat template, this one has none; set tokenizer.chat_template"
            )
        self._tokenizer = tokenizer
        specials = special_tokens(tokenizer)
        asked = self._render([_USER], generate=True)
        self.generation_prompt = asked.removeprefix(self._render([_USER]))
        if asked == self.generation_prompt:
            raise ValueError(
                f"a chat template must append its generation prompt, this one writes {asked[-80:]!r}"
            )
        last = _after(self._render([_USER, _ANSWER]), _MARK)
        self.trailing, self.stop = _closing(last, specials)
        self.leading = self._leading(asked)
        self.tail = self._tail(last)
        self.control_tokens = specials | self._used_tokens()
        self.lowering = self._probe_lowering(tool_format)

    def head(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> str:
        """A whole conversation without the generation prompt."""
        lowered = self.lowering.lower(messages, tools)
        native = (
            [_shown(self.lowering.untrusted.clean_json(t)) for t in tools] if self.lowering.tools else None
        )
        return self._render(lowered, tools=native)

    def news(self, messages: Sequence[Message]) -> str:
        """New messages as they stand behind an assistant message and its tail."""
        lowered = self.lowering.lower(messages)
        names = [str(m.get("name", "probe_tool")) for m in lowered if m["role"] == "tool"]
        dummy: dict[str, Any] = dict(_ANSWER)
        if names:
            dummy["tool_calls"] = [_call(name) for name in names]
        rest = _after(_after(self._render([_USER, dummy, *lowered]), _MARK), self.stop)
        return rest.removeprefix(self.tail)

    def _render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        generate: bool = False,
        tools: list[dict[str, Any]] | None = None,
    ) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                list(messages), tools=tools, tokenize=False, add_generation_prompt=generate
            )
        )

    def _try(self, messages: Sequence[Mapping[str, Any]], tools: list[dict[str, Any]] | None = None) -> str:
        try:
            return self._render(messages, tools=tools)
        except Exception:  # noqa: BLE001 - a foreign program: whatever it raises means that it refuses the messages
            return ""

    def _leading(self, asked: str) -> str:
        """White space that the template writes between the generation prompt and the answer."""
        text = self._render([_USER, _ANSWER, _USER])
        lead = text[len(asked) : text.find(_MARK)] if text.startswith(asked) else ""
        return lead if lead.isspace() else ""

    def _tail(self, last: str) -> str:
        """What follows the stop token whether or not another message comes."""
        after = _after(_after(self._render([_USER, _ANSWER, _USER]), _MARK), self.stop)
        return _common_prefix(_after(last, self.stop), after)

    def _used_tokens(self) -> set[str]:
        """Added tokens that the template itself writes, whether or not the tokenizer calls them special."""
        text = self._render([_USER, _ANSWER, _USER], generate=True)
        added = {token.content.strip() for token in self._tokenizer.added_tokens_decoder.values()}
        return {token for token in added if len(token) > 2 and not token.isalnum() and token in text}

    def _probe_lowering(self, tool_format: ToolFormat) -> Lowering:
        call: Any = {"role": "assistant", "content": "", "tool_calls": [_call("probe_tool")]}
        result = {"role": "tool", "content": "PROBE-RESULT", "name": "probe_tool", "tool_call_id": "call_0"}
        shown = self._try([_USER, call, result])
        calls = tool_format.render_calls(call) in shown
        listed = self._try([_USER], tools=[_shown(_SCHEMA)])
        twice = self._try([_USER, _ANSWER, _USER, {"role": "user", "content": "PROBE-SECOND"}])
        return Lowering(
            tool_format=tool_format,
            calls=calls,
            tools=calls and "probe_tool" in listed and "PROBE-DESCRIPTION" in listed,
            results=calls and "PROBE-RESULT" in shown,
            system="PROBE-SYSTEM" in self._try([{"role": "system", "content": "PROBE-SYSTEM"}, _USER]),
            user_twice="PROBE-USER" in twice and "PROBE-SECOND" in twice,
            control_tokens=frozenset(self.control_tokens),
            ignore_case=any(
                t.special and t.normalized for t in self._tokenizer.added_tokens_decoder.values()
            ),
        )


def _shown(tool: ToolSchema) -> dict[str, Any]:
    return {"type": "function", "function": tool}


def _call(name: str) -> dict[str, Any]:
    return {
        "id": "call_0",
        "type": "function",
        "function": {"name": name, "arguments": {"probe_argument": "PROBE-VALUE"}},
    }


def _common_prefix(first: str, second: str) -> str:
    length = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    return first[: min(len(first), len(second)) if length is None else length]


def _after(text: str, mark: str) -> str:
    _, found, rest = text.partition(mark)
    if not found:
        raise ValueError(
            f"a chat template must show every assistant message and close it by its stop token; {mark!r} is "
            f"missing in {text[-120:]!r}"
        )
    return rest


def _closing(text: str, specials: set[str]) -> tuple[str, str]:
    """White space and the special token that follow an assistant's content."""
    stripped = text.lstrip()
    token = max((t for t in specials if t and stripped.startswith(t)), key=len, default=None)
    if token is None:
        raise ValueError(
            "a chat template must close an assistant message by a special token, so that its end can be "
            f"sampled; this one writes {text[:40]!r} after the content. Write eos_token there"
        )
    return text[: len(text) - len(stripped)], token

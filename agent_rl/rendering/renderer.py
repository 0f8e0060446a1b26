"""Renderer: messages to token ids and back.

A conversation is a sum of pieces, each tokenised once and by itself, so that appending changes nothing:

    prompt(ms)          <|im_start|>user\nHi<|im_end|>\n | <|im_start|>assistant\n
    action(m)           Hello.<|im_end|>
    observation(news)   \n | <|im_start|>user\nBye<|im_end|>\n | <|im_start|>assistant\n

    prompt(ms + [m] + news, tools) == prompt(ms, tools) + action(m) + observation(news)

Generation stops on end-of-turn ids only. Special tokens inside what users and tools say are neutralised.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

import numpy as np

from agent_rl.rendering.chat_template import ChatTemplate
from agent_rl.types import Int32
from tools import formats
from tools.formats import ToolFormat
from tools.types import Message, ToolSchema


class Renderer:
    """Turns messages into the tokens that one model reads and writes."""

    def __init__(
        self,
        tokenizer: Any,
        tool_format: ToolFormat | str = "hermes",
        history: Literal["keep", "template"] = "keep",
    ) -> None:
        """Probe the tokenizer's chat template.

        Args:
            tokenizer: a Hugging Face tokenizer with a chat template.
            tool_format: how the model writes calls, a name or the format itself.
            history: `keep` appends to sampled tokens; `template` renders every prompt anew.

        Raises:
            ValueError: the template cannot be used for training; the message says what to change.
        """
        self.tool_format = formats.get(tool_format) if isinstance(tool_format, str) else tool_format
        self.history = history
        self._tokenizer = tokenizer
        self._template = ChatTemplate(tokenizer, self.tool_format)
        stop = int(tokenizer.convert_tokens_to_ids(self._template.stop))
        end = tokenizer.eos_token_id
        self._stop_ids = (stop,) if end is None or end == stop else (stop, int(end))
        self._generation_prompt = self._encode(self._template.generation_prompt)
        self._tail = self._encode(self._template.tail)
        self._known: dict[str, ToolSchema] = {}

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Ids that end a turn: the template's end of an assistant message first, then the tokenizer's end."""
        return self._stop_ids

    @property
    def generation_prompt(self) -> Int32:
        """Tokens that ask for an answer, [L] int32; every prompt and observation ends with them."""
        return self._generation_prompt

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> Int32:
        """A whole conversation, ending with the generation prompt. [L] int32.

        Raises:
            ValueError: it does not begin with a system or user message.
        """
        if not messages or messages[0]["role"] == "assistant":
            raise ValueError("a prompt begins with a system or user message; put the task before the answer")
        self._known |= {tool["name"]: tool for tool in tools}
        if self.history == "template":
            return _joined([self._encode(self._template.head(messages, tools)), self._generation_prompt])
        runs = [(said, list(run)) for said, run in groupby(messages, lambda m: m["role"] == "assistant")]
        parts = [self._encode(self._template.head(runs[0][1], tools)), self._generation_prompt]
        for i, (said, run) in enumerate(runs[1:], 1):
            if not said:
                parts.append(self.observation(run))
                continue
            for j, message in enumerate(run):
                parts.append(self.action(message, tools))
                if j + 1 < len(run) or i + 1 == len(runs):
                    parts.append(self.observation([]))
        return _joined(parts)

    def messages(self, messages: Sequence[Message]) -> Int32:
        """New messages behind a fixed dummy exchange, ending with the generation prompt. [L] int32."""
        text = self._template.news(messages) if messages else ""
        return _joined([self._encode(text), self._generation_prompt])

    def observation(self, messages: Sequence[Message]) -> Int32:
        """What follows a sampled stop id: the template's tail, then `messages`. [L] int32."""
        return _joined([self._tail, self.messages(messages)])

    def action(self, message: Message, tools: Sequence[ToolSchema] | None = None) -> Int32:
        """A demonstration: an assistant message as the model would write it, then the stop id. [L] int32.

        Args:
            message: of role `assistant`.
            tools: order of parameters for formats that need it; those of earlier prompts by default.
        """
        text = self._template.lowering.text(message, self._tools(tools))
        written = self._encode(f"{self._template.leading}{text}{self._template.trailing}")
        return _joined([written, np.array(self._stop_ids[:1], np.int32)])

    def parse(self, token_ids: Int32, tools: Sequence[ToolSchema] | None = None) -> Message:
        """The message that sampled tokens [L] spell; never raises on any text.

        A final stop id is dropped. `tool_calls` and `parse_errors` appear only when there are any.
        """
        parsed = self.tool_format.parse(self._decode(token_ids), self._tools(tools))
        message: Message = {"role": "assistant", "content": parsed.content}
        if parsed.tool_calls:
            message["tool_calls"] = parsed.tool_calls
        if parsed.parse_errors:
            message["parse_errors"] = parsed.parse_errors
        return message

    def plain(self, token_ids: Int32) -> Message:
        """Sampled tokens [L] as content alone: a summary calls nothing."""
        return {"role": "assistant", "content": self._decode(token_ids).strip()}

    def _tools(self, tools: Sequence[ToolSchema] | None) -> Sequence[ToolSchema]:
        return list(self._known.values()) if tools is None else tools

    def _encode(self, text: str) -> Int32:
        return np.array(self._tokenizer.encode(text, add_special_tokens=False), np.int32)

    def _decode(self, token_ids: Int32) -> str:
        ids = [int(i) for i in token_ids]
        if ids and ids[-1] in self._stop_ids:
            ids.pop()
        return str(self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _joined(parts: Sequence[Int32]) -> Int32:
    return np.concatenate(parts).astype(np.int32)

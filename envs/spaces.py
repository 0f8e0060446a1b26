"""Gymnasium spaces for conversations: observations are lists of messages, actions are assistant messages."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from tools.types import Message

_LETTERS = "abcdefghijklmnopqrstuvwxyz "
_ROLES = ("system", "user", "assistant", "tool")


def is_message(value: Any) -> bool:
    """Whether `value` has the shape of a `Message`."""
    return isinstance(value, dict) and value.get("role") in _ROLES and isinstance(value.get("content"), str)


class _TextSpace(spaces.Space[Any]):
    """What both spaces share: no shape, equality by kind, seeded random words."""

    def __init__(self, max_chars: int = 64, seed: int | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)
        self.max_chars = max_chars

    @property
    def is_np_flattenable(self) -> bool:
        """Text has no fixed size."""
        return False

    def _words(self) -> str:
        length = int(self.np_random.integers(1, self.max_chars + 1))
        return "".join(_LETTERS[i] for i in self.np_random.integers(0, len(_LETTERS), size=length))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other).get("max_chars") == self.max_chars

    def __hash__(self) -> int:
        return hash((type(self), self.max_chars))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Messages(_TextSpace):
    """The observation space: a list of messages, possibly empty."""

    def sample(self, mask: Any = None, probability: Any = None) -> list[Message]:
        """One user message of random words."""
        return [{"role": "user", "content": self._words()}]

    def contains(self, x: Any) -> bool:
        """Whether `x` is a list of messages."""
        return isinstance(x, list) and all(is_message(m) for m in x)


class AssistantMessage(_TextSpace):
    """The action space: an assistant message, or plain text."""

    def sample(self, mask: Any = None, probability: Any = None) -> Message:
        """An assistant message of random words without a tool call."""
        return {"role": "assistant", "content": self._words()}

    def contains(self, x: Any) -> bool:
        """Whether `x` is text or an assistant message."""
        return isinstance(x, str) or (is_message(x) and x["role"] == "assistant")

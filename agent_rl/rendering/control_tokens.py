"""Keeps text from becoming control tokens.

A tool output that contains `<|im_end|>` must not end a message. Tokenizers read such text as the control
token wherever it stands, so a space is put behind its first character before the text enters a template:
`<|im_end|>` becomes `< |im_end|>`, which reads the same to a person and spells ordinary tokens. Lone
surrogates, which no tokenizer can encode, become U+FFFD.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar

from tools.values import well_formed

J = TypeVar("J")


def special_tokens(tokenizer: Any) -> set[str]:
    """The text of every special token of a tokenizer."""
    added = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    return added | set(tokenizer.all_special_tokens)


class Neutralizer:
    """Makes text safe to put where `tokens` mean something."""

    def __init__(self, tokens: Iterable[str], *, ignore_case: bool = False) -> None:
        ordered = sorted((t for t in tokens if t.strip()), key=len, reverse=True)
        pattern = "|".join(re.escape(token) for token in ordered)
        flags = re.IGNORECASE if ignore_case else re.NOFLAG
        self._pattern = re.compile(pattern, flags) if ordered else None

    def clean(self, text: str) -> str:
        """The text without any of the tokens.

        Raises:
            ValueError: the tokens overlap so that a space does not separate them.
        """
        text = well_formed(text)
        if self._pattern is None:
            return text
        for _ in range(4):
            text, found = self._pattern.subn(_split, text)
            if not found:
                return text
        raise ValueError(
            "control tokens must not occur in text, but putting spaces into them forms others "
            f"({self._pattern.search(text)}); rename the special tokens of the tokenizer"
        )

    def clean_json(self, value: J) -> J:
        """A JSON value whose texts and keys hold none of the tokens."""
        cleaned: J = json.loads(self.clean(json.dumps(value, ensure_ascii=False)))
        return cleaned


def _split(match: re.Match[str]) -> str:
    token = match[0]
    return f"{token[0]} {token[1:]}" if len(token) > 1 else " "

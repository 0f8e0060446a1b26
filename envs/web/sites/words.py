"""Made-up names: every word belongs to one split, so that no world of one split resembles one of another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from random import Random
from typing import get_args

from envs.types import Split

_ONSETS = [
    "b",
    "d",
    "f",
    "g",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "z",
    "br",
    "dr",
    "gl",
    "kr",
    "pl",
    "st",
    "tr",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ou"]
_SPLITS: tuple[Split, ...] = get_args(Split)


class Words:
    """Draws names of one split, no name twice."""

    def __init__(self, rng: Random, split: Split, used: Iterable[str] = ()) -> None:
        self._rng = rng
        self._split = _SPLITS.index(split)
        self.used = set(used)

    def name(self) -> str:
        """A capitalised word of three syllables, such as `Kavoru`."""
        while True:
            syllables = [self._rng.choice(_ONSETS) + self._rng.choice(_VOWELS) for _ in range(3)]
            word = "".join(syllables).capitalize()
            if _owner(word) == self._split and word not in self.used:
                self.used.add(word)
                return word

    def word(self) -> str:
        """The same in lower case."""
        return self.name().lower()

    def phrase(self, n: int) -> str:
        """`n` words, the first one capitalised."""
        return " ".join([self.name(), *(self.word() for _ in range(n - 1))])


def _owner(word: str) -> int:
    return hashlib.blake2b(word.encode(), digest_size=4).digest()[0] % len(_SPLITS)

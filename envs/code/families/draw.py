"""Where inputs come from: small random lists, texts and grids."""

from __future__ import annotations

import random

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [
    "amber", "basil", "cedar", "delta", "ember", "fable", "grove", "honey", "ivory",
    "jade", "kite", "lemon", "maple", "noon", "olive", "pearl", "quartz", "river",
    "sage", "tulip", "umber", "violet", "willow", "xenon", "yarrow", "zinc", "ab",
    "be", "cat", "do", "egg", "fig", "go", "hut", "ice", "jam",
    "oak",
]  # fmt: skip


def ints(rng: random.Random, low: int = -20, high: int = 50, most: int = 12) -> list[int]:
    """A list of up to `most` numbers; now and then with repeats on purpose."""
    numbers = [rng.randint(low, high) for _ in range(rng.randint(1, most))]
    if rng.random() < 0.4:
        numbers += rng.choices(numbers, k=rng.randint(1, 3))
    return numbers


def words(rng: random.Random, most: int = 7) -> list[str]:
    """Up to `most` words, some of them capitalised, some repeated."""
    chosen = rng.choices(WORDS, k=rng.randint(1, most))
    return [word.capitalize() if rng.random() < 0.3 else word for word in chosen]


def sentence(rng: random.Random, most: int = 7) -> str:
    """Words joined by single spaces."""
    return " ".join(words(rng, most))


def letters(rng: random.Random, alphabet: str = LETTERS, most: int = 14) -> str:
    """A text over `alphabet` with runs of equal letters in it."""
    text = ""
    for _ in range(rng.randint(1, most)):
        text += rng.choice(alphabet) * (rng.randint(2, 4) if rng.random() < 0.25 else 1)
    return text[: most + 4]


def listed(items: list[int] | list[str]) -> str:
    """`3, 5 and 9`."""
    names = [str(item) for item in items]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]

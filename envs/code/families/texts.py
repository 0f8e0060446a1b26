"""Steps over a text: letters, words, order, and perhaps a count at the end."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families import draw
from envs.code.problem import Kind, Problem, function

Step = tuple[str, str]
"""What to do, in words; and the expression over `text` that does it."""


def _case(rng: random.Random) -> Step:
    letter = rng.choice("aeiorst")
    words = f'turn every letter "{letter}" to upper case'
    return words, f"text.replace({letter!r}, {letter.upper()!r})"


def _replace(rng: random.Random) -> Step:
    old, new = rng.sample("aeilnorst", 2)
    return f'replace every "{old}" by "{new}{new}"', f"text.replace({old!r}, {new * 2!r})"


def _remove(rng: random.Random) -> Step:
    letters = "".join(sorted(rng.sample("aeiourstlnm", 3)))
    words = f"remove the letters {draw.listed(list(letters))} (lower case only)"
    return words, f"''.join(c for c in text if c not in {letters!r})"


def _caesar(rng: random.Random) -> Step:
    k = rng.randint(1, 12)
    words = f"move each lower-case letter {k} places on in the alphabet, from z on to a again"
    shifted = f"chr((ord(c) - 97 + {k}) % 26 + 97)"
    return words, f"''.join({shifted} if 'a' <= c <= 'z' else c for c in text)"


def _rotate(rng: random.Random) -> Step:
    k = rng.randint(1, 4)
    return f"move the first {k} characters to the end", f"text[{k}:] + text[:{k}]"


def _short_words(rng: random.Random) -> Step:
    k = rng.randint(3, 5)
    words = f"remove the words shorter than {k} letters (words are separated by one space)"
    return words, f"' '.join(word for word in text.split(' ') if len(word) >= {k})"


def _words_order(rng: random.Random) -> Step:
    if rng.random() < 0.5:
        return "put the words in reverse order", "' '.join(text.split(' ')[::-1])"
    words = "sort the words by length, those of equal length staying in their order"
    return words, "' '.join(sorted(text.split(' '), key=lambda word: len(word)))"


def _initials(rng: random.Random) -> Step:
    k = rng.randint(2, 3)
    return f"cut each word to its first {k} letters", f"' '.join(word[:{k}] for word in text.split(' '))"


def _reverse_long(rng: random.Random) -> Step:
    k = rng.randint(3, 5)
    words = f"reverse each word longer than {k} letters in place"
    return words, f"' '.join(word[::-1] if len(word) > {k} else word for word in text.split(' '))"


def _every(rng: random.Random) -> Step:
    k = rng.randint(2, 4)
    words = f"remove every {k}. character (the {k}., the {2 * k}. and so on)"
    return words, f"''.join(c for i, c in enumerate(text, 1) if i % {k} != 0)"


def _squeeze(rng: random.Random) -> Step:
    k = rng.randint(1, 2)
    words = f"shorten each run of more than {k} equal characters to {k}"
    return words, f"''.join(c for i, c in enumerate(text) if i < {k} or text[i - {k} : i] != c * {k})"


STEPS: tuple[Callable[[random.Random], Step], ...] = (
    _case, _replace, _remove, _caesar, _rotate, _short_words, _words_order, _initials, _reverse_long, _every,
    _squeeze,
)  # fmt: skip


def _count(rng: random.Random) -> Step:
    letters, k = "".join(sorted(rng.sample("aeioust", 2))), rng.randint(2, 4)
    return rng.choice(
        [
            (
                f"return how often the letters {draw.listed(list(letters))} stand in it",
                f"sum(1 for c in text if c in {letters!r})",
            ),
            (f"return {k} times its length", f"{k} * len(text)"),
            (
                f"return the number of words longer than {k} letters",
                f"len([word for word in text.split(' ') if len(word) > {k}])",
            ),
        ]
    )


def texts(rng: random.Random, level: int) -> Problem:
    """`level + 1` different steps; from level 1 on, a third of the problems end in a count."""
    steps = [step(rng) for step in rng.sample(STEPS, level + 1)]
    fold = _count(rng) if level > 0 and rng.random() < 0.33 else None
    lines = [f"text = {code}" for _, code in steps]
    lines.append(f"return {fold[1]}" if fold else "return text")
    todo = [words for words, _ in steps] + ([fold[0]] if fold else ["return the text"])
    words = "Given a text" + "".join((", then " if at else ": ") + step for at, step in enumerate(todo))
    returns: Kind = "int" if fold else "str"
    return Problem(
        family="texts",
        name="rewrite",
        parameters=(("text", "str"),),
        returns=returns,
        statement=words + ".",
        source=function(f"def rewrite(text: str) -> {returns}:", *lines),
        draw=lambda random_: (draw.sentence(random_),),
        edges=(("",), ("a",), ("aaabbb sss",), ("Zebra zoo lazy oxen",)),
    )

"""Counting and searching in lists: pairs, streaks, most frequent, windows."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families import draw
from envs.code.problem import Args, Problem, function

_HEAD = "def count(numbers: list[int]) -> int:"
Draft = tuple[str, tuple[str, ...]]


def _pairs(rng: random.Random) -> Draft:
    k = rng.randint(3, 9)
    relation, code = rng.choice(
        [
            (f"sum is divisible by {k}", f"(numbers[i] + numbers[j]) % {k} == 0"),
            (f"difference is at most {k}", f"abs(numbers[i] - numbers[j]) <= {k}"),
            (f"first number is at least {k} greater than the second", f"numbers[i] >= numbers[j] + {k}"),
        ]
    )
    body = (f"return sum(1 for j in range(len(numbers)) for i in range(j) if {code})",)
    return f"how many pairs of positions i < j there are whose {relation}", body


def _streak(rng: random.Random) -> Draft:
    k = rng.randint(2, 12)
    words, code = rng.choice(
        [
            (f"numbers in a row that are greater than {k}", f"n > {k}"),
            (f"numbers in a row that are not divisible by {k % 4 + 2}", f"n % {k % 4 + 2} != 0"),
            (f"numbers in a row that lie between 0 and {k + 20}, both included", f"0 <= n <= {k + 20}"),
        ]
    )
    lines = (
        "best = run = 0",
        "for n in numbers:",
        f"    run = run + 1 if {code} else 0",
        "    best = max(best, run)",
        "return best",
    )
    return f"the length of the longest streak of {words} (0 if there is none)", lines


def _peaks(rng: random.Random) -> Draft:
    k = rng.randint(1, 6)
    condition = f"numbers[i] >= numbers[i - 1] + {k} and numbers[i] >= numbers[i + 1] + {k}"
    words = f"how many numbers, the first and the last left aside, exceed both neighbours by at least {k}"
    return words, (f"return sum(1 for i in range(1, len(numbers) - 1) if {condition})",)


def _frequent(rng: random.Random) -> Draft:
    m = rng.randint(4, 12)
    lines = (
        f"rests = [n % {m} for n in numbers]",
        "if not rests:",
        "    return -1",
        "return min(rests, key=lambda r: (-rests.count(r), r))",
    )
    return f"the most frequent remainder modulo {m}, the smallest if several tie, -1 for an empty list", lines


def _window(rng: random.Random) -> Draft:
    k = rng.randint(2, 4)
    lines = (
        f"if len(numbers) < {k}:",
        "    return 0",
        f"return max(sum(numbers[i : i + {k}]) for i in range(len(numbers) - {k} + 1))",
    )
    return f"the greatest sum of {k} numbers in a row, or 0 if there are fewer than {k}", lines


def _kth(rng: random.Random) -> Draft:
    k, other = rng.randint(2, 4), rng.randint(-9, -1)
    lines = (
        "different = sorted(set(numbers), reverse=True)",
        f"return different[{k - 1}] if len(different) >= {k} else {other}",
    )
    return f"the {k}. largest of the different numbers, or {other} if there are fewer than {k}", lines


def _balance(rng: random.Random) -> Draft:
    k = rng.randint(1, 5)
    lines = (
        f"level, lows = {k}, 0",
        "for n in numbers:",
        f"    level = max(level + n, -{k * 10})",
        "    if level < 0:",
        "        lows += 1",
        "return lows",
    )
    words = (
        f"how often an account is below zero after a booking, when it starts at {k}, the numbers are "
        "booked in "
        f"order, and a balance below -{k * 10} is at once lifted to -{k * 10}"
    )
    return words, lines


_EASY: tuple[Callable[[random.Random], Draft], ...] = (_kth, _window, _peaks)
_ALL: tuple[Callable[[random.Random], Draft], ...] = (*_EASY, _pairs, _streak, _frequent, _balance)


def counting(rng: random.Random, level: int) -> Problem:
    """Level 0: one easy search; level 1: any; from level 2 on, the sum of two of them."""
    if level < 2:
        words, lines = rng.choice(_EASY if level == 0 else _ALL)(rng)
        source = function(_HEAD, *lines)
    else:
        (first, one), (second, two) = (make(rng) for make in rng.sample(_ALL, 2))
        factor = rng.randint(2, 5)
        words = f"the sum of two figures: first, {first}; second, taken {factor} times, {second}"
        source = "\n\n".join(
            [
                function("def first(numbers: list[int]) -> int:", *one),
                function("def second(numbers: list[int]) -> int:", *two),
                function(_HEAD, f"return first(numbers) + {factor} * second(numbers)"),
            ]
        )
    return Problem(
        family="counting",
        name="count",
        parameters=(("numbers", "list[int]"),),
        returns="int",
        statement=f"Given a list of numbers, return {words}.",
        source=source,
        draw=_draw,
        edges=(([],), ([5],), ([3, 3, 3, 3],), ([9, 1, 9, -8, 30, 2],)),
    )


def _draw(rng: random.Random) -> Args:
    return (draw.ints(rng, -15, 30),)

"""Whole numbers: digits in a base, divisors, ranges with rules."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.problem import Problem, function

Draft = tuple[str, tuple[str, ...]]
_HEAD = "def figure(n: int) -> int:"


def _digit_sum(rng: random.Random) -> Draft:
    base, weight = rng.randint(2, 9), rng.randint(2, 5)
    lines = (
        "total = 0",
        "for place in range(20):",
        f"    digit = n // {base} ** place % {base}",
        f"    total += digit * {weight} if place % 2 == 0 else digit",
        "return total",
    )
    words = (
        f"the sum of the digits of n written in base {base}, the last digit and every second one before it "
        f"counted {weight} times"
    )
    return words, lines


def _range(rng: random.Random) -> Draft:
    a, b, c = rng.sample(range(2, 12), 3)
    condition = f"(i % {a} == 0 or i % {b} == 0) and i % {c} != 0"
    words = f"how many numbers from 1 to n are divisible by {a} or {b} but not by {c}"
    return words, (f"return sum(1 for i in range(1, n + 1) if {condition})",)


def _divisors(rng: random.Random) -> Draft:
    k = rng.randint(2, 6)
    words = f"the sum of the divisors of n that are greater than {k} (n itself included)"
    return words, (f"return sum(i for i in range({k + 1}, n + 1) if n % i == 0)",)


def _steps(rng: random.Random) -> Draft:
    a, b, most = rng.choice([3, 5]), rng.randint(1, 9), rng.randint(15, 40)
    lines = (
        "for step in range(" + str(most) + "):",
        "    if n <= 1:",
        "        return step",
        f"    n = n // 2 if n % 2 == 0 else {a} * n + {b}",
        f"return {most}",
    )
    words = (
        f"the number of steps until n is at most 1, where a step halves an even number and turns an odd one "
        f"into {a} times it plus {b}; stop counting at {most}"
    )
    return words, lines


def _digit_rule(rng: random.Random) -> Draft:
    digit, d = rng.randint(1, 9), rng.randint(2, 6)
    condition = f"'{digit}' in str(i) and i % {d} != 0"
    words = (
        f"the sum of the numbers from 1 to n that contain the digit {digit} (in base ten) "
        f"and are not divisible by {d}"
    )
    return words, (f"return sum(i for i in range(1, n + 1) if {condition})",)


def _recurrence(rng: random.Random) -> Draft:
    a, b, m = rng.randint(1, 4), rng.randint(1, 4), rng.randint(30, 999)
    x, y = rng.randint(0, 3), rng.randint(1, 5)
    lines = (
        f"x, y = {x}, {y}",
        "for _ in range(n):",
        f"    x, y = y, ({a} * y + {b} * x) % {m}",
        "return x",
    )
    words = (
        f"term n of the sequence that begins with term 0 = {x} and term 1 = {y} and goes on with {a} times "
        f"the last term plus {b} times the one before, modulo {m}"
    )
    return words, lines


_EASY: tuple[Callable[[random.Random], Draft], ...] = (_range, _divisors)
_ALL: tuple[Callable[[random.Random], Draft], ...] = (*_EASY, _digit_sum, _steps, _digit_rule, _recurrence)


def digits(rng: random.Random, level: int) -> Problem:
    """Level 0: ranges and divisors; level 1 and above: any."""
    words, lines = rng.choice(_EASY if level == 0 else _ALL)(rng)
    return Problem(
        family="digits",
        name="figure",
        parameters=(("n", "int"),),
        returns="int",
        statement=f"Given a whole number n from 0 to 2000, return {words}.",
        source=function(_HEAD, *lines),
        draw=lambda random_: (random_.choice([random_.randint(2, 60), random_.randint(2, 2000)]),),
        edges=((0,), (1,), (2,), (2000,)),
    )

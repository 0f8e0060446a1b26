"""Steps over a list of numbers: filter, map, order, cut, and perhaps fold into one number at the end."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families import draw
from envs.code.problem import Kind, Problem, function

Step = tuple[str, str]
"""What to do, in words; and the expression over `numbers` that does it."""


def _keep_above(rng: random.Random) -> Step:
    k = rng.randint(-5, 25)
    return f"keep only the numbers greater than {k}", f"[n for n in numbers if n > {k}]"


def _keep_at_most(rng: random.Random) -> Step:
    k = rng.randint(5, 35)
    return f"keep only the numbers that are at most {k}", f"[n for n in numbers if n <= {k}]"


def _keep_remainder(rng: random.Random) -> Step:
    d = rng.randint(2, 5)
    r = rng.randrange(d)
    words = f"keep only the numbers n for which n modulo {d} is {r} (as Python's % gives it)"
    return words, f"[n for n in numbers if n % {d} == {r}]"


def _drop_multiples(rng: random.Random) -> Step:
    d = rng.randint(2, 7)
    return f"remove the numbers divisible by {d}", f"[n for n in numbers if n % {d} != 0]"


def _affine(rng: random.Random) -> Step:
    a, b = rng.randint(2, 5), rng.randint(1, 9)
    return f"replace each number by {a} times it plus {b}", f"[n * {a} + {b} for n in numbers]"


def _shift_odd(rng: random.Random) -> Step:
    k = rng.randint(1, 9)
    return f"add {k} to each odd number", f"[n + {k} if n % 2 != 0 else n for n in numbers]"


def _clamp(rng: random.Random) -> Step:
    low = rng.randint(-10, 5)
    high = low + rng.randint(8, 25)
    words = f"raise those below {low} to {low} and lower those above {high} to {high}"
    return words, f"[min(max(n, {low}), {high}) for n in numbers]"


def _rotate(rng: random.Random) -> Step:
    k = rng.randint(1, 4)
    words = f"move the first {k} numbers to the end (all of them, if there are fewer, stay as they are)"
    return words, f"numbers[{k}:] + numbers[:{k}]"


def _every(rng: random.Random) -> Step:
    k, start = rng.randint(2, 3), rng.randint(0, 1)
    first = "first" if start == 0 else "second"
    return f"keep every {k}. number, starting with the {first}", f"numbers[{start}::{k}]"


def _drop_first(rng: random.Random) -> Step:
    k = rng.randint(1, 3)
    return f"leave out the first {k}", f"numbers[{k}:]"


def _neighbours(rng: random.Random) -> Step:
    k = rng.randint(1, 3)
    words = f"replace the list by the differences between each number and the one {k} places before it"
    return words, f"[numbers[i] - numbers[i - {k}] for i in range({k}, len(numbers))]"


def _weighted(rng: random.Random) -> Step:
    k = rng.randint(1, 3)
    words = f"multiply each number by its position, counting positions from {k}"
    return words, f"[i * n for i, n in enumerate(numbers, {k})]"


def _running(rng: random.Random) -> Step:
    m = rng.randint(20, 99)
    words = f"replace each number by the sum of all up to and including it, modulo {m}"
    return words, f"[sum(numbers[: i + 1]) % {m} for i in range(len(numbers))]"


def _order(rng: random.Random) -> Step:
    m = rng.randint(3, 9)
    words = f"sort by the remainder modulo {m}, numbers with equal remainders from small to large"
    return words, f"sorted(numbers, key=lambda n: (n % {m}, n))"


def _unique(rng: random.Random) -> Step:
    if rng.random() < 0.5:
        words = "remove repeated numbers, keeping the first of each"
        return words, "[n for i, n in enumerate(numbers) if n not in numbers[:i]]"
    words = "remove repeated numbers, keeping the last of each"
    return words, "[n for i, n in enumerate(numbers) if n not in numbers[i + 1 :]]"


STEPS: tuple[Callable[[random.Random], Step], ...] = (
    _keep_above, _keep_at_most, _keep_remainder, _drop_multiples, _affine, _shift_odd, _clamp, _rotate,
    _every, _drop_first, _neighbours, _weighted, _running, _order, _unique,
)  # fmt: skip


def _fold(rng: random.Random) -> Step:
    m, k = rng.randint(50, 200), rng.randint(1, 9)
    return rng.choice(
        [
            (f"return their sum plus {k}", f"sum(numbers) + {k}"),
            (f"return the sum of their squares modulo {m}", f"sum(n * n for n in numbers) % {m}"),
            ("return the largest of them, or -1 if none is left", "max(numbers) if numbers else -1"),
            (f"return how many of them are greater than {k}", f"len([n for n in numbers if n > {k}])"),
            (
                "return the first minus the second plus the third and so on, 0 if none is left",
                "sum(n if i % 2 == 0 else -n for i, n in enumerate(numbers))",
            ),
        ]
    )


def numbers(rng: random.Random, level: int) -> Problem:
    """`level + 1` different steps; from level 1 on, half of the problems fold to one number at the end."""
    steps = [step(rng) for step in rng.sample(STEPS, level + 1)]
    fold = _fold(rng) if level > 0 and rng.random() < 0.5 else None
    lines = [f"numbers = {code}" for _, code in steps]
    lines.append(f"return {fold[1]}" if fold else "return numbers")
    todo = [words for words, _ in steps] + ([fold[0]] if fold else ["return the list"])
    words = "Given a list of numbers" + "".join(
        (", then " if at else ": ") + step for at, step in enumerate(todo)
    )
    returns: Kind = "int" if fold else "list[int]"
    return Problem(
        family="numbers",
        name="transform",
        parameters=(("numbers", "list[int]"),),
        returns=returns,
        statement=words + ".",
        source=function(f"def transform(numbers: list[int]) -> {returns}:", *lines),
        draw=lambda random_: (draw.ints(random_),),
        edges=(([],), ([7],), ([0, 0, 0],), (list(range(-12, 40, 4)),)),
    )

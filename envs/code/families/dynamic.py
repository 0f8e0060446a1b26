"""Small dynamic programmes: ways, costs, best choices."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families import draw
from envs.code.problem import Args, Problem, function


def _ways(rng: random.Random) -> Problem:
    coins = sorted(rng.sample(range(1, 12), 3))
    order = rng.random() < 0.5
    if order:
        words = f"The order counts: {coins[0]} + {coins[1]} and {coins[1]} + {coins[0]} are two ways"
        loops = ("for total in range(1, n + 1):", f"    for coin in {coins}:")
    else:
        words = "The order does not count"
        loops = (f"for coin in {coins}:", "    for total in range(1, n + 1):")
    return Problem(
        family="dynamic",
        name="ways",
        parameters=(("n", "int"),),
        returns="int",
        statement=f"Return in how many ways n (0 to 60) is a sum of numbers from {draw.listed(coins)}, each "
        f"used as often as wanted. {words}; 0 has one way. Give the count modulo 10007.",
        source=function(
            "def ways(n: int) -> int:",
            "table = [1] + [0] * n",
            *loops,
            "        if coin <= total:",
            "            table[total] = (table[total] + table[total - coin]) % 10007",
            "return table[n]",
        ),
        draw=lambda random_: (random_.randint(2, 60),),
        edges=((0,), (1,), (coins[0],), (coins[2],), (60,)),
    )


def _fewest(rng: random.Random) -> Problem:
    coins = sorted(rng.sample(range(2, 16), 3))
    return Problem(
        family="dynamic",
        name="fewest",
        parameters=(("n", "int"),),
        returns="int",
        statement=f"Return the smallest number of coins worth {draw.listed(coins)} that sum to exactly n "
        "(0 to 80), or -1 if no coins do.",
        source=function(
            "def fewest(n: int) -> int:",
            "table = [0] + [10**6] * n",
            "for total in range(1, n + 1):",
            f"    for coin in {coins}:",
            "        if coin <= total:",
            "            table[total] = min(table[total], table[total - coin] + 1)",
            "return table[n] if table[n] < 10**6 else -1",
        ),
        draw=lambda random_: (random_.randint(2, 80),),
        edges=((0,), (1,), (coins[0],), (coins[1] + coins[2],), (80,)),
    )


def _apart(rng: random.Random) -> Problem:
    gap, bonus = rng.randint(2, 4), rng.randint(0, 5)
    return Problem(
        family="dynamic",
        name="best",
        parameters=(("numbers", "list[int]"),),
        returns="int",
        statement="Choose some of the numbers (perhaps none) so that the positions of any two chosen "
        "ones differ "
        f"by at least {gap}. Each chosen number counts its value plus {bonus}. Return the greatest total.",
        source=function(
            "def best(numbers: list[int]) -> int:",
            "table = [0]",
            "for i, n in enumerate(numbers):",
            f"    before = table[max(i + 1 - {gap}, 0)]",
            f"    table.append(max(table[i], before + n + {bonus}))",
            "return table[-1]",
        ),
        draw=_ints,
        edges=(([],), ([-9],), ([4],), ([1, 2, 3, 4, 5, 6],), ([-3, -2, -1],)),
    )


def _rising(rng: random.Random) -> Problem:
    low = rng.randint(0, 3)
    high = low + rng.randint(3, 12)
    return Problem(
        family="dynamic",
        name="longest",
        parameters=(("numbers", "list[int]"),),
        returns="int",
        statement="Return the length of the longest subsequence (numbers in their order, some left out) "
        "in which "
        f"each number exceeds the one before it by at least {low} and at most {high}.",
        source=function(
            "def longest(numbers: list[int]) -> int:",
            "table = []",
            "for i, n in enumerate(numbers):",
            f"    fits = [table[j] for j in range(i) if {low} <= n - numbers[j] <= {high}]",
            "    table.append(1 + max(fits, default=0))",
            "return max(table, default=0)",
        ),
        draw=_ints,
        edges=(([],), ([3],), ([5, 5, 5],), (list(range(0, 40, low + 1)),), ([9, 8, 7, 1],)),
    )


def _distance(rng: random.Random) -> Problem:
    insert, change = rng.randint(1, 4), rng.randint(1, 6)
    return Problem(
        family="dynamic",
        name="cost",
        parameters=(("old", "str"), ("new", "str")),
        returns="int",
        statement=f"Return the least cost of turning old into new when inserting or deleting a letter "
        f"costs {insert} "
        f"and replacing one costs {change}.",
        source=function(
            "def cost(old: str, new: str) -> int:",
            f"row = [j * {insert} for j in range(len(new) + 1)]",
            "for i, a in enumerate(old, 1):",
            "    above = row",
            f"    row = [i * {insert}]",
            "    for j, b in enumerate(new, 1):",
            f"        swap = above[j - 1] + (0 if a == b else {change})",
            f"        row.append(min(swap, above[j] + {insert}, row[j - 1] + {insert}))",
            "return row[-1]",
        ),
        draw=lambda random_: (draw.letters(random_, "abcd", 8), draw.letters(random_, "abcd", 8)),
        edges=(("", ""), ("a", ""), ("", "abc"), ("abcd", "abcd"), ("abc", "bcd")),
    )


def _grid(rng: random.Random) -> Problem:
    pit = rng.randint(2, 9)
    return Problem(
        family="dynamic",
        name="cheapest",
        parameters=(("rows", "list[str]"),),
        returns="int",
        statement="The texts are the rows of a map of '.', '#' and 'o', all equally long. Walk from the "
        "upper left to "
        "the lower right cell, one cell right or down at a time, never onto '#'. Each cell entered, the "
        "first "
        f"included, costs 1 if it is '.' and {pit} if it is 'o'. Return the least cost, or -1 if there "
        "is no way.",
        source=function(
            "def cheapest(rows: list[str]) -> int:",
            f"price = {{'.': 1, 'o': {pit}, '#': 10**6}}",
            "best = [0] + [10**6] * (len(rows[0]) - 1)",
            "for row in rows:",
            "    for x, cell in enumerate(row):",
            "        before = min(best[x], best[x - 1]) if x > 0 else best[x]",
            "        best[x] = min(before + price[cell], 10**6)",
            "return best[-1] if best[-1] < 10**6 else -1",
        ),
        draw=_map,
        edges=((["."],), (["#"],), (["..#", "##."],), (["o.o.o"],), ([".o", "o."],)),
    )


def _ints(rng: random.Random) -> Args:
    return (draw.ints(rng, -6, 25, 10),)


def _map(rng: random.Random) -> Args:
    width = rng.randint(2, 6)
    return (["".join(rng.choices(".o#", (6, 3, 1.5), k=width)) for _ in range(rng.randint(2, 6))],)


_EASY: tuple[Callable[[random.Random], Problem], ...] = (_ways, _fewest, _apart)
_HARD: tuple[Callable[[random.Random], Problem], ...] = (_rising, _distance, _grid)


def dynamic(rng: random.Random, level: int) -> Problem:
    """Level 2: over one number or list; level 3: also over two texts and maps."""
    return rng.choice(_EASY if level < 3 else (*_EASY, *_HARD))(rng)

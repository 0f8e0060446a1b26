"""Small notations: records, time spans, stack programmes, brackets, robots."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families import draw
from envs.code.problem import Args, Problem, function


def _records(rng: random.Random) -> Problem:
    outer, inner = rng.choice([(";", "="), ("|", ":"), (",", "->"), (" ", "=")])
    keys = rng.sample(["ab", "cd", "ef", "gh", "ij"], 3)
    wanted, factor = keys[:2], rng.randint(2, 5)
    shown = f"{keys[0]}{inner}4{outer}{keys[2]}{inner}-1"

    def text(random_: random.Random) -> Args:
        parts = [
            f"{random_.choice(keys)}{inner}{random_.randint(-9, 30)}" for _ in range(random_.randint(1, 6))
        ]
        return (outer.join(parts),)

    return Problem(
        family="parsing",
        name="total",
        parameters=(("text", "str"),),
        returns="int",
        statement=f'The text is empty or a list of records such as "{shown}". Return the sum of the '
        "values of "
        f'"{wanted[0]}" plus {factor} times the sum of the values of "{wanted[1]}"; other names do not '
        "count.",
        source=function(
            "def total(text: str) -> int:",
            "result = 0",
            f"for part in text.split({outer!r}) if text else []:",
            f"    name, value = part.split({inner!r})",
            f"    if name == {wanted[0]!r}:",
            "        result += int(value)",
            f"    elif name == {wanted[1]!r}:",
            f"        result += {factor} * int(value)",
            "return result",
        ),
        draw=text,
        edges=(("",), (f"{wanted[0]}{inner}0",), (f"{wanted[1]}{inner}7",), (f"{keys[2]}{inner}7",)),
    )


def _spans(rng: random.Random) -> Problem:
    least, pause = rng.randint(10, 60), rng.randint(5, 30)

    def span(random_: random.Random) -> str:
        start = random_.randint(0, 1300)
        end = min(start + random_.choice([least - 1, least, least + 1, random_.randint(0, 140)]), 1439)
        return f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"

    return Problem(
        family="parsing",
        name="minutes",
        parameters=(("spans", "list[str]"),),
        returns="int",
        statement='Each text is a span of time within one day, such as "08:30-09:15". Return the total '
        "number of "
        f"minutes, where spans shorter than {least} minutes count as 0 and {pause} minutes are taken off "
        "every span "
        "of two hours or more.",
        source=function(
            "def minutes(spans: list[str]) -> int:",
            "total = 0",
            "for span in spans:",
            "    start, end = span.split('-')",
            "    long = int(end[:2]) * 60 + int(end[3:]) - int(start[:2]) * 60 - int(start[3:])",
            f"    if long >= {least}:",
            f"        total += long - {pause} if long >= 120 else long",
            "return total",
        ),
        draw=lambda random_: ([span(random_) for _ in range(random_.randint(1, 5))],),
        edges=(([],), (["00:00-00:00"],), (["08:00-10:00"],), (["08:00-09:59", "10:30-12:31"],)),
    )


def _stack(rng: random.Random) -> Problem:
    m, start = rng.randint(30, 300), rng.randint(0, 9)
    add, times, swap = rng.sample(["add", "mul", "swp", "xo", "zip", "ka"], 3)

    def programme(random_: random.Random) -> Args:
        parts = [str(random_.randint(0, 20)) for _ in range(2)]
        parts += [
            random_.choice([add, times, swap, str(random_.randint(0, 20))])
            for _ in range(random_.randint(1, 7))
        ]
        return (" ".join(parts),)

    return Problem(
        family="parsing",
        name="run",
        parameters=(("text", "str"),),
        returns="int",
        statement=f"The text is empty or words separated by spaces. They work on a stack that first "
        f"holds {start} "
        f'only: a number is pushed; "{add}" replaces the two topmost numbers by their sum, "{times}" by '
        "their product "
        f'modulo {m}, "{swap}" exchanges them. A word that needs two numbers does nothing if there are '
        "fewer. Return "
        "the topmost number at the end.",
        source=function(
            "def run(text: str) -> int:",
            f"stack = [{start}]",
            "for word in text.split():",
            "    if word.isdigit():",
            "        stack.append(int(word))",
            "    elif len(stack) >= 2:",
            "        b, a = stack.pop(), stack.pop()",
            f"        if word == {add!r}:",
            "            stack.append(a + b)",
            f"        elif word == {times!r}:",
            f"            stack.append(a * b % {m})",
            f"        elif word == {swap!r}:",
            "            stack += [b, a]",
            "return stack[-1]",
        ),
        draw=programme,
        edges=(("",), (add,), (f"3 {swap}",), (f"19 18 {times} {times}",), (f"1 2 {swap} {add}",)),
    )


def _brackets(rng: random.Random) -> Problem:
    opening, closing = rng.choice([("(", ")"), ("[", "]"), ("<", ">"), ("{", "}")])
    weight, wrong = rng.randint(2, 5), rng.randint(-9, -1)
    alphabet = opening + closing + "x"

    def text(random_: random.Random) -> Args:
        deep, made = 0, ""
        for _ in range(random_.randint(1, 12)):
            mark = random_.choice(alphabet)
            if mark == closing and deep == 0 and random_.random() < 0.9:
                mark = opening
            deep += (mark == opening) - (mark == closing)
            made += mark
        return (made + closing * max(deep - (random_.random() < 0.1), 0),)

    return Problem(
        family="parsing",
        name="depth",
        parameters=(("text", "str"),),
        returns="int",
        statement=f"The text consists of {opening}, {closing} and x. If its brackets are not balanced, "
        f"return {wrong}. "
        f"Otherwise return {weight} times the greatest depth of nesting plus the number of x that stand "
        "inside no "
        "bracket.",
        source=function(
            "def depth(text: str) -> int:",
            "deep = deepest = free = 0",
            "for mark in text:",
            f"    if mark == {opening!r}:",
            "        deep += 1",
            f"    elif mark == {closing!r}:",
            "        deep -= 1",
            "        if deep < 0:",
            f"            return {wrong}",
            "    elif deep == 0:",
            "        free += 1",
            "    deepest = max(deepest, deep)",
            f"return {weight} * deepest + free if deep == 0 else {wrong}",
        ),
        draw=text,
        edges=(("",), ("x",), (closing + opening,), (opening,), (f"x{opening}x{closing}x",)),
    )


def _robot(rng: random.Random) -> Problem:
    size, step = rng.randint(4, 9), rng.randint(1, 3)
    left, right, go = rng.sample(["L", "R", "F", "T", "W", "G"], 3)
    return Problem(
        family="parsing",
        name="position",
        parameters=(("moves", "str"),),
        returns="list[int]",
        statement=f"A robot stands on column 0, row 0 of a board of {size} columns and {size} rows "
        "(numbered from 0, "
        f"rows growing northwards) and faces north. {left} turns it left, {right} turns it right, {go} "
        "moves it "
        f"{step} cells ahead; leaving the board on one side it comes in again on the opposite side. "
        "Return its final "
        "column and row.",
        source=function(
            "def position(moves: str) -> list[int]:",
            "x, y, dx, dy = 0, 0, 0, 1",
            "for move in moves:",
            f"    if move == {left!r}:",
            "        dx, dy = -dy, dx",
            f"    elif move == {right!r}:",
            "        dx, dy = dy, -dx",
            f"    elif move == {go!r}:",
            f"        x, y = (x + {step} * dx) % {size}, (y + {step} * dy) % {size}",
            "return [x, y]",
        ),
        draw=lambda random_: (draw.letters(random_, left + right + go + go, 14),),
        edges=(("",), (go,), (left + go,), (right + go,), (go * size,)),
    )


_EASY: tuple[Callable[[random.Random], Problem], ...] = (_records, _spans)
_ALL: tuple[Callable[[random.Random], Problem], ...] = (*_EASY, _stack, _brackets, _robot)


def parsing(rng: random.Random, level: int) -> Problem:
    """Level 1: records and spans; level 2 and above: also stacks, brackets and robots."""
    return rng.choice(_EASY if level < 2 else _ALL)(rng)

"""Families of generated problems: each turns a generator and a level into a `Problem`."""

from __future__ import annotations

import random
from collections.abc import Callable

from envs.code.families.counting import counting
from envs.code.families.dates import dates
from envs.code.families.digits import digits
from envs.code.families.dynamic import dynamic
from envs.code.families.numbers import numbers
from envs.code.families.parsing import parsing
from envs.code.families.texts import texts
from envs.code.problem import Problem

Family = Callable[[random.Random, int], Problem]

FAMILIES: dict[str, Family] = {
    "numbers": numbers,
    "texts": texts,
    "counting": counting,
    "digits": digits,
    "parsing": parsing,
    "dates": dates,
    "dynamic": dynamic,
}
LEVELS: tuple[tuple[str, ...], ...] = (
    ("numbers", "texts", "counting", "digits"),
    ("numbers", "texts", "counting", "digits", "parsing", "dates"),
    ("numbers", "texts", "counting", "parsing", "dates", "dynamic"),
    ("numbers", "texts", "counting", "parsing", "dates", "dynamic"),
)
"""Which families a level draws from, each as likely as the others."""

__all__ = ["FAMILIES", "LEVELS", "Family"]

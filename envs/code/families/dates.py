"""Days and weekdays; dates are texts such as 2024-02-29."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta

from envs.code.families import draw
from envs.code.problem import Problem, function

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_IMPORT = "from datetime import date, timedelta\n\n\n"
_START = date(1999, 1, 1)


def _later(rng: random.Random) -> Problem:
    k, m = rng.randint(20, 400), rng.randint(2, 9)
    return Problem(
        family="dates",
        name="later",
        parameters=(("day", "str"), ("n", "int")),
        returns="str",
        statement=f"Given a date (year-month-day) and a number n from 0 to 50, return the date {m} * n + "
        f"{k} days "
        "after it, in the same form.",
        source=_IMPORT
        + function(
            "def later(day: str, n: int) -> str:",
            f"return (date.fromisoformat(day) + timedelta(days={m} * n + {k})).isoformat()",
        ),
        draw=lambda random_: (_day(random_), random_.randint(0, 50)),
        edges=(("2024-02-28", 0), ("2023-12-31", 1), ("2000-02-29", 50)),
    )


def _weekdays(rng: random.Random) -> Problem:
    chosen = sorted(rng.sample(range(7), rng.randint(2, 3)))
    names = draw.listed([WEEKDAYS[at] + "s" for at in chosen])
    return Problem(
        family="dates",
        name="count_days",
        parameters=(("start", "str"), ("n", "int")),
        returns="int",
        statement=f"Given a date (year-month-day) and a number n from 0 to 60, return how many of the n "
        "days that "
        f"begin with this date are {names}.",
        source=_IMPORT
        + function(
            "def count_days(start: str, n: int) -> int:",
            "first = date.fromisoformat(start)",
            f"return sum(1 for i in range(n) if (first + timedelta(days=i)).weekday() in {chosen})",
        ),
        draw=lambda random_: (_day(random_), random_.randint(1, 60)),
        edges=(("2024-02-26", 0), ("2024-02-26", 1), ("2023-12-25", 7), ("2021-03-01", 60)),
    )


def _due(rng: random.Random) -> Problem:
    closed = sorted(rng.sample(range(7), 2))
    step = rng.randint(1, 3)
    return Problem(
        family="dates",
        name="due",
        parameters=(("day", "str"), ("n", "int")),
        returns="str",
        statement="An office is closed on "
        + draw.listed([WEEKDAYS[at] + "s" for at in closed])
        + ". Given a date "
        f"(year-month-day) and a number n from 0 to 20, return the date on which {step} * n open days "
        "have passed, "
        "counting from the day after the given one; for n = 0 it is the given date itself.",
        source=_IMPORT
        + function(
            "def due(day: str, n: int) -> str:",
            "today, passed = date.fromisoformat(day), 0",
            "for _ in range(100):",
            f"    if passed >= {step} * n:",
            "        break",
            "    today += timedelta(days=1)",
            f"    passed += 0 if today.weekday() in {closed} else 1",
            "return today.isoformat()",
        ),
        draw=lambda random_: (_day(random_), random_.randint(1, 20)),
        edges=(("2024-03-01", 0), ("2024-02-29", 1), ("2023-12-30", 2), ("2022-01-01", 20)),
    )


def _season(rng: random.Random) -> Problem:
    month, d = rng.randint(2, 12), rng.randint(5, 25)
    return Problem(
        family="dates",
        name="business_year",
        parameters=(("days", "list[str]"),),
        returns="list[int]",
        statement=f"A business year begins on day {d} of month {month} and is named after the calendar "
        "year in which "
        "it begins. Given dates (year-month-day), return the name (a number) of the business year of "
        "each, in order.",
        source=_IMPORT
        + function(
            "def business_year(days: list[str]) -> list[int]:",
            "years = []",
            "for text in days:",
            "    day = date.fromisoformat(text)",
            f"    years.append(day.year if (day.month, day.day) >= ({month}, {d}) else day.year - 1)",
            "return years",
        ),
        draw=lambda random_: ([_near(random_, month, d) for _ in range(random_.randint(1, 5))],),
        edges=(
            ([],),
            ([f"2020-{month:02}-{d:02}"],),
            ([f"2021-{month:02}-{d - 1:02}", f"2021-{month:02}-{d + 1:02}"],),
            (["2019-01-01", "2019-12-31"],),
        ),
    )


def _near(rng: random.Random, month: int, day: int) -> str:
    centre = date(rng.randint(2001, 2030), month, day)
    return (centre + timedelta(days=rng.choice([rng.randint(-3, 3), rng.randint(-200, 200)]))).isoformat()


def _day(rng: random.Random) -> str:
    return (_START + timedelta(days=rng.randrange(12_000))).isoformat()


_EASY: tuple[Callable[[random.Random], Problem], ...] = (_later, _weekdays)
_ALL: tuple[Callable[[random.Random], Problem], ...] = (*_EASY, _due, _season)


def dates(rng: random.Random, level: int) -> Problem:
    """Level 1: add days, count weekdays; level 2 and above: also office days and business years."""
    return rng.choice(_EASY if level < 2 else _ALL)(rng)

"""Generates tasks: a site, a world and a goal, as a pure function of the arguments.

A task holds seeds only; `plan_of` draws the plan again. A draft becomes a task if the grader gives 1 to the state that
gold's way leaves, and 0 to the untouched state and to what each of its near misses leaves.

    data    {"source": "sites", "site", "seed", "level", "words", "now"}
    answer  {"plan": name, "draw": seed of the plan}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast, get_args

from envs.errors import TaskError
from envs.tasksets import task_id, world_seeds
from envs.types import Split, Task
from envs.web.grading import expected, same
from envs.web.plans import LEVELS, Draw, Plan, SiteSpec, start_of
from envs.web.sites import all_sites
from envs.web.sites.words import Words
from envs.web.world import Rows
from tools.types import Message

ENV_ID = "web-v1"
DRAWS = 40
"""Plans that are drawn in one world before the next world is tried."""
NOW = "2024-06-15T09:00:00"
SYSTEM = (
    "You use a web site through a text browser. A page is shown as lines; what can be acted on has a number in "
    "brackets, such as [3] button. Reach the goal with the tools, change nothing else, then call finish. Numbers "
    "belong to the page that was shown last."
)


def generate(
    split: Split = "train", n: int = 1, seed: int = 0, *, level: int = 0, site: str = ""
) -> list[Task]:
    """`n` tasks of a split and a level (0 to 3), from one site or from all in turn.

    Raises:
        ValueError: an unknown split, level or site, or a negative `n`.
    """
    if level not in LEVELS or isinstance(level, bool):
        raise ValueError(f"a level is one of {', '.join(map(str, LEVELS))}, got {level!r}")
    sites = all_sites()
    if site and site not in sites:
        raise ValueError(f"a site is one of {', '.join(sites)}, got {site!r}")
    names = [site] if site else list(sites)
    seeds = world_seeds(split, n, seed)
    return [_generate_one(sites[names[i % len(names)]], world, level, split) for i, world in enumerate(seeds)]


def _generate_one(spec: SiteSpec, seed: int, level: int, split: Split) -> Task:
    """The first sound task of a world; a world without one gives way to the next of its split."""
    while True:
        data: dict[str, Any] = {
            "source": "sites",
            "site": spec.name,
            "seed": seed,
            "level": level,
            "words": split,
            "now": NOW,
        }
        rows = start_of(spec, seed, level, split).rows
        names = [maker.__name__ for maker in spec.plans[level]]
        for draw in range(DRAWS):
            name = names[(seed + draw) % len(names)]
            plan = _draw(spec, data, name, draw)
            if plan is not None and _sound(rows, plan):
                return _task(plan, data, {"plan": name, "draw": draw}, split, level)
        seed += len(get_args(Split))


def _task(plan: Plan, data: dict[str, Any], answer: dict[str, Any], split: Split, level: int) -> Task:
    prompt: tuple[Message, ...] = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": plan.text},
    )
    return Task(
        id=task_id(ENV_ID, prompt, data, answer),
        env=ENV_ID,
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        seed=int(data["seed"]) % 2**31,
        metadata={"level": level, "site": data["site"], "template": answer["plan"]},
    )


def _sound(before: Rows, plan: Plan) -> bool:
    """Whether the grader tells gold from doing nothing and from every near miss."""
    gold = expected(before, plan.gold.changes)
    others = [before, *(expected(before, miss.changes) for miss in plan.misses.values())]
    return (
        len(plan.misses) >= 3 and same(before, gold, gold) and not any(same(before, gold, o) for o in others)
    )


def _draw(spec: SiteSpec, data: Mapping[str, Any], name: str, draw: int) -> Plan | None:
    makers = {maker.__name__: maker for maker in spec.plans[data["level"]]}
    if name not in makers:
        raise TaskError(
            f"the plans of {spec.name}, level {data['level']}, are {', '.join(makers)}, got {name!r}"
        )
    start = start_of(spec, data["seed"], data["level"], data["words"])
    rng = Random(f"{ENV_ID}/{data['seed']}/{name}/{draw}")
    words = Words(rng, data["words"], start.names)
    return makers[name](Draw(rng=rng, words=words, rows=start.rows, level=data["level"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The world that a task starts in."""

    spec: SiteSpec
    key: tuple[int, int, Split]
    """Seed, level and split of the world."""
    rows: Rows
    now: str
    secret: str


def place_of(task: Task) -> Place:
    """The site and the rows of a task.

    Raises:
        TaskError: its data names no site, or is malformed.
    """
    data, sites = task.data, all_sites()
    if data.get("site") not in sites:
        raise TaskError(
            f"the site of a {ENV_ID} task is one of {', '.join(sites)}, got {data.get('site')!r:.60}"
        )
    seed, level, words = data.get("seed"), data.get("level"), data.get("words")
    if not isinstance(seed, int) or level not in LEVELS or words not in get_args(Split):
        raise TaskError(
            f"a {ENV_ID} task has seed, level (0 to 3) and words (a split), got {dict(data)!r:.200}"
        )
    spec = sites[data["site"]]
    key = (seed, level, cast(Split, words))
    return Place(
        spec=spec,
        key=key,
        rows=start_of(spec, *key).rows,
        now=str(data.get("now", NOW)),
        secret=f"{seed}/{task.id}",
    )


def plan_of(task: Task) -> Plan:
    """The plan behind a task: for graders and gold policies only.

    Raises:
        TaskError: the answer names no plan of the task's world.
    """
    answer = task.answer
    if not isinstance(answer, Mapping) or not isinstance(answer.get("draw"), int):
        raise TaskError(f"the answer of a {ENV_ID} task is {{'plan': name, 'draw': number}}")
    place = place_of(task)
    plan = _cached(
        place.spec.name,
        task.data["seed"],
        task.data["level"],
        task.data["words"],
        str(answer.get("plan")),
        answer["draw"],
    )
    if plan is None:
        raise TaskError(f"there is no plan {answer.get('plan')!r} with draw {answer['draw']} in this world")
    return plan


@lru_cache(maxsize=256)
def _cached(site: str, seed: int, level: int, words: Split, name: str, draw: int) -> Plan | None:
    return _draw(all_sites()[site], {"seed": seed, "level": level, "words": words}, name, draw)

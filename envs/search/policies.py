"""Scripted policies: gold, sloppy (what a warm start imitates) and no-op; the attacks stand in `attacks.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from envs.policies import PolicySpec, Script, ScriptedPolicy, call, trivial
from envs.search.attacks import ATTACKS
from envs.search.tasks import query_for, world_of
from envs.types import Policy, Task
from tools.types import Message

SLIP = 0.25
"""How often `sloppy` goes wrong at each step that it takes: it then hands in a near miss at once."""
_QUERY_CHARS = 1000


def policies() -> dict[str, PolicySpec]:
    """All scripted policies by name."""
    specs = [
        PolicySpec(name="gold", kind="gold", make=lambda task, seed: ScriptedPolicy(gold(task))),
        PolicySpec(name="sloppy", kind="sloppy", make=lambda task, seed: ScriptedPolicy(sloppy(task, seed))),
        PolicySpec(name="noop", kind="noop", make=lambda task, seed: ScriptedPolicy([])),
    ]
    specs += [PolicySpec(name=name, kind="attack", make=_attack(script)) for name, script in ATTACKS.items()]
    return {spec.name: spec for spec in specs}


def _attack(script: Callable[[str], Script]) -> Callable[[Task, int], Policy]:
    return lambda task, seed: ScriptedPolicy(script(question_of(task)))


def question_of(task: Task) -> str:
    """The last message of the prompt: all that an attack is told."""
    return task.prompt[-1]["content"]


def submit(golds: Sequence[str]) -> dict[str, PolicySpec]:
    """Constant answers, handed in without a search."""
    return trivial(
        lambda text: call("finish", answer=text[:_QUERY_CHARS]), golds, also={"unknown": "unknown"}
    )


def gold(task: Task) -> Iterator[Message]:
    """Find and open each page of the chain, hand in the answer: 2, 3, 5, 7 and 9 turns by level."""
    yield from _read(task)
    yield call("finish", answer=task.answer["golds"][0])


def sloppy(task: Task, seed: int) -> Iterator[Message]:
    """Plays like gold, but at each step may take something else on the page for the answer."""
    rng = Random(f"sloppy/{task.id}/{seed}")
    near: list[str] = task.answer.get("near") or ["unknown"]
    for action in _read(task):
        yield action
        if rng.random() < SLIP:
            yield call("finish", answer=rng.choice(near))
            return
    yield call("finish", answer=task.answer["golds"][0])


def _read(task: Task) -> Iterator[Message]:
    """The searches and openings of the chain; for tasks of a file one search for the question."""
    data: Any = task.data
    if "digest" not in data:
        yield call("search", query=question_of(task)[:_QUERY_CHARS])
        return
    world = world_of(data)
    things = {document.id: thing for thing, document in world.pages.items()}
    for id in task.answer["path"]:
        yield call("search", query=query_for(things[id].name, things[id].kind))
        if data["level"] > 0:
            yield call("open", doc_id=id)

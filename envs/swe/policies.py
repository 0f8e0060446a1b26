"""The scripted policies of `swe-v1`: gold, sloppy, no-op; the attacks stand in `attacks.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from envs.policies import PolicySpec, Script, ScriptedPolicy, calls, say
from envs.swe.attacks import ATTACKS
from envs.types import Policy, Task

WRONG_RATE, ASTRAY_RATE, STOP_RATE, UNTRIED_RATE = 0.25, 0.15, 0.1, 0.5
"""How often `sloppy` writes a near miss, does not find a place that the statement does not name (both for each
function to repair), gives up without submitting, and skips the tests."""


def gold(task: Task, seed: int) -> Policy:
    """Find each broken function, put the original back, from level 1 on run the tests, submit."""
    return ScriptedPolicy(_play(_edits(task), tries=task.metadata.get("level") != 0, submits=True))


def sloppy(task: Task, seed: int) -> Policy:
    """Like gold, but wrong, astray, impatient or untried at the rates above, each drawn independently."""
    rng = random.Random(f"{task.id}:{seed}")
    stops, untried = (rng.random() < rate for rate in (STOP_RATE, UNTRIED_RATE))
    edits = []
    for path, edit in _edits(task):
        wrong, astray = rng.random() < WRONG_RATE, rng.random() < ASTRAY_RATE
        if astray and task.metadata.get("level"):
            continue
        other = rng.choice(edit["wrong"]) if wrong and edit["wrong"] else edit["new"]
        edits.append((path, {**edit, "new": other}))
    return ScriptedPolicy(_play(edits, tries=not untried, submits=not stops))


def noop(task: Task, seed: int) -> Policy:
    """Call nothing."""
    return ScriptedPolicy([])


def _edits(task: Task) -> list[tuple[str, dict[str, Any]]]:
    return [(path, edit) for path, edits in task.answer["edits"].items() for edit in edits]


def _play(edits: list[tuple[str, dict[str, Any]]], *, tries: bool, submits: bool) -> Script:
    for path, edit in edits:
        yield calls(("search", {"pattern": _head(edit["old"]), "path": path}))
        yield calls(("edit", {"command": "replace", "path": path, "old": edit["old"], "new": edit["new"]}))
    if tries:
        yield calls(("run_tests", {}))
    yield calls(("submit", {})) if submits else say("I could not find it.")


def _head(source: str) -> str:
    """A pattern for the line that defines a function."""
    lines: Iterator[str] = (line.strip() for line in source.splitlines())
    head = next(line for line in lines if line.startswith(("def ", "async def ")))
    return head.partition("(")[0]


POLICIES: dict[str, PolicySpec] = {
    "gold": PolicySpec(name="gold", kind="gold", make=gold),
    "sloppy": PolicySpec(name="sloppy", kind="sloppy", make=sloppy),
    "noop": PolicySpec(name="noop", kind="noop", make=noop),
    **{name: PolicySpec(name=name, kind="attack", make=make) for name, make in ATTACKS.items()},
}

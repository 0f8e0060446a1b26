"""Scripted policies: gold, sloppy, no-op; the attacks stand in `attacks.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from random import Random

from envs.policies import PolicySpec, Script, ScriptedPolicy, call
from envs.types import Policy, Task
from envs.web.attacks import ATTACKS
from envs.web.plans import Step
from envs.web.tasks import plan_of
from tools.types import Message, ToolSchema

MISTAKE = {0: 0.20, 1: 0.40, 2: 0.55, 3: 0.70}
"""How often `sloppy` plays a near miss, by level."""
_LOST = "I cannot find it."


class Reader:
    """Plays a script that also needs to see the first page, which stands at the end of the prompt."""

    def __init__(self, script: Generator[Message, str, None]) -> None:
        next(script)  # waits for the first page
        self._script, self._policy, self._begun = script, ScriptedPolicy([]), False

    def act(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Message:
        """The next message of the script."""
        if not tools:
            return self._policy.act(messages, tools)
        if not self._begun:
            self._begun = True
            first = self._script.send(messages[-1]["content"])
            self._policy = ScriptedPolicy(_after(first, self._script))
        return self._policy.act(messages, tools)


def _after(first: Message, script: Generator[Message, str, None]) -> Script:
    seen = yield first
    while True:
        try:
            following = script.send(seen)
        except StopIteration:
            return
        seen = yield following


def follow(steps: Sequence[Step]) -> Script:
    """Play steps by the names that stand on the page, scrolling to where they are; then finish."""
    seen = yield call("noop")  # never sent: `Reader` puts the first page in
    for step in steps:
        if step[0] == "goto":
            seen = yield call("goto", url=step[1])
            continue
        number, seen = yield from find(step[1], step[2], seen)
        if number is None:
            break
        seen = yield _act(step, number)
    yield call("finish")


def find(role: str, name: str, seen: str) -> Generator[Message, str, tuple[int | None, str]]:
    """The number of an element, scrolling down and then up for it."""
    for direction in ("down", "up"):
        while True:
            found = number_of(role, name, seen)
            if found is not None:
                return found, seen
            hint = re.search(r"^lines \d+ to \d+ of \d+; scroll ([a-z ]+) for more$", seen, re.MULTILINE)
            if hint is None or direction not in hint[1].split():
                break
            seen = yield call("scroll", direction=direction)
    return None, seen


def number_of(role: str, name: str, seen: str) -> int | None:
    """The number of the first element of this role and name in an observation."""
    wanted = re.escape(name.replace('"', "'"))
    match = re.search(rf'\[(\d+)\] {role} "{wanted}"', seen)
    return int(match[1]) if match else None


def _act(step: Step, number: int) -> Message:
    if step[0] == "fill":
        return call("fill", element=number, text=step[3])
    if step[0] == "select":
        return call("select", element=number, option=step[3])
    if step[0] == "press":
        return call("press", element=number, key=step[3])
    return call("click", element=number)


def gold(task: Task, seed: int = 0) -> Policy:
    """Go the right way to the goal; only the checker and demonstrations may call it."""
    if task.data.get("source") == "miniwob":
        return Reader(_through(task))
    return Reader(follow(plan_of(task).gold.steps))


def _through(task: Task) -> Script:
    """The way through a MiniWoB page; it ends by itself."""
    from envs.web.miniwob_tasks import GOLDS

    first = yield call("noop")  # never sent: `Reader` puts the first page in
    way = GOLDS[task.data["name"]](first.partition("\n\n")[2])
    try:
        action = next(way)
        while True:
            seen = yield action
            action = way.send(seen)
    except (StopIteration, LookupError):  # it is at its end, or lost
        yield call("finish")


def sloppy(task: Task, seed: int) -> Policy:
    """Like gold, but at a rate that grows with the level one of the task's near misses."""
    rng = Random(f"sloppy/{task.id}/{seed}")
    if task.data.get("source") == "miniwob":
        return ScriptedPolicy([call("finish")]) if rng.random() < MISTAKE[1] else gold(task)
    plan = plan_of(task)
    wrong = rng.random() < MISTAKE[min(int(task.data["level"]), max(MISTAKE))]
    way = plan.misses[rng.choice(sorted(plan.misses))] if wrong else plan.gold
    return Reader(follow(way.steps))


def _attack(script: Callable[[], Script]) -> Callable[[Task, int], Policy]:
    return lambda task, seed: ScriptedPolicy(script())


def policies() -> dict[str, PolicySpec]:
    """All scripted policies by name."""
    specs = [
        PolicySpec(name="gold", kind="gold", make=gold),
        PolicySpec(name="sloppy", kind="sloppy", make=sloppy),
        PolicySpec(name="noop", kind="noop", make=lambda task, seed: ScriptedPolicy([])),
    ]
    specs += [PolicySpec(name=name, kind="attack", make=_attack(script)) for name, script in ATTACKS.items()]
    return {spec.name: spec for spec in specs}

"""The scripted policies of `code-v1`: gold, sloppy, no-op; the attacks stand in `attacks.py`."""

from __future__ import annotations

import random

from envs.code.attacks import ATTACKS
from envs.code.driver import decode
from envs.policies import PolicySpec, Script, ScriptedPolicy, calls, say
from envs.types import Policy, Task
from tools.types import Message

WRONG_RATE, STOP_RATE, UNTRIED_RATE = 0.3, 0.15, 0.5
"""How often `sloppy` submits a near miss, gives up without submitting, and skips trying its source first."""
FILE = "solution.py"


def gold(task: Task, seed: int) -> Policy:
    """Write the reference to a file, try it on the first example, submit it."""
    return ScriptedPolicy(_play(task.answer["solution"], task, tries=True))


def sloppy(task: Task, seed: int) -> Policy:
    """Like gold, but wrong, impatient or untried at the rates above, each drawn independently."""
    rng = random.Random(f"{task.id}:{seed}")
    wrong, stops, untried = (rng.random() < rate for rate in (WRONG_RATE, STOP_RATE, UNTRIED_RATE))
    near_misses = task.answer["near_misses"]
    source = rng.choice(near_misses) if wrong and near_misses else task.answer["solution"]
    return ScriptedPolicy(_play(source, task, tries=not untried, submits=not stops))


def noop(task: Task, seed: int) -> Policy:
    """Call nothing."""
    return ScriptedPolicy([])


def _play(source: str, task: Task, *, tries: bool, submits: bool = True) -> Script:
    if tries:
        yield calls(("write_file", {"path": FILE, "content": source}))
        yield _try(task)
    if submits:
        yield calls(("submit", {"code": source}))
    else:
        yield say("I could not solve this.")


def _try(task: Task) -> Message:
    """Run the file on the first public example; where there is none, only load it."""
    examples, name = task.data.get("examples", []), task.data["entry_point"]
    if task.data["form"] == "program":
        given = examples[0][0] if examples else ""
        return calls(("shell", {"command": f"python3 {FILE} <<'END'\n{given}END"}))
    code = f"import solution\nprint(solution.{name}.__name__)"
    if examples:
        args = ", ".join(repr(decode(arg)) for arg in examples[0][0])
        code = f"from solution import {name}\nprint({name}({args}))"
    return calls(("python", {"code": code}))


POLICIES: dict[str, PolicySpec] = {
    "gold": PolicySpec(name="gold", kind="gold", make=gold),
    "sloppy": PolicySpec(name="sloppy", kind="sloppy", make=sloppy),
    "noop": PolicySpec(name="noop", kind="noop", make=noop),
    **{name: PolicySpec(name=name, kind="attack", make=make) for name, make in ATTACKS.items()},
}

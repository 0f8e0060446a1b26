"""The scripted policies of `code-v1`: gold, sloppy, no-op, trivial ones; the attacks stand in `attacks.py`."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence

from envs.code.attacks import ATTACKS, answering
from envs.code.driver import decode
from envs.errors import NoGoldError
from envs.policies import CANDIDATES, PolicySpec, Script, ScriptedPolicy, calls, say
from envs.types import Policy, Task
from tools.types import Message

WRONG_RATES, STOP_RATE = (0.2, 0.35, 0.5, 0.65), 0.15
"""How often `sloppy` submits a near miss, by level, and how often it gives up without submitting."""
FILE = "solution.py"


def gold(task: Task, seed: int) -> Policy:
    """Submit the reference; from level 1 test it first, from level 2 write it to a file, from level 3 try it there.

    Raises:
        NoGoldError: the task's file has no solution.
    """
    solution = task.answer.get("solution")
    if not isinstance(solution, str):
        raise NoGoldError(f"task {task.id} has no solution: whether it can be solved is not known")
    return ScriptedPolicy(_play(solution, task))


def sloppy(task: Task, seed: int) -> Policy:
    """Like gold, but wrong or impatient at the rates above, each drawn independently."""
    rng = random.Random(f"{task.id}:{seed}")
    wrong, stops = rng.random() < WRONG_RATES[_level(task)], rng.random() < STOP_RATE
    near_misses, solution = task.answer["near_misses"], task.answer.get("solution")
    source = rng.choice(near_misses) if (wrong or solution is None) and near_misses else solution
    return ScriptedPolicy(_play(source or "", task, submits=not stops))


def noop(task: Task, seed: int) -> Policy:
    """Call nothing."""
    return ScriptedPolicy([])


def trivial_policies(tasks: Sequence[Task]) -> dict[str, PolicySpec]:
    """Constants, an echo of the input, and the results that are most frequent among these tasks."""
    constants = {"none": "None", "zero": "0", "yes": "'yes'", "empty": "''", "no_items": "[]", "true": "True"}
    found = {name: _policy(name, _constant(expression)) for name, expression in constants.items()}
    found["echo"] = _policy("echo", _echo)
    seen = Counter(json.dumps(t["expected"]) for task in tasks for t in task.answer["tests"])
    for number, (value, _) in enumerate(seen.most_common(3)):
        literal = repr(decode(json.loads(value)))
        found[f"frequent{number + 1}"] = _policy(f"frequent{number + 1}", _constant(literal))
    values = [repr(decode(json.loads(value))) for value, _ in seen.most_common(CANDIDATES)]
    found["candidates"] = _policy("candidates", _constant(f"[{', '.join(values)}]"))
    return found


def _policy(name: str, source: Callable[[Task], str]) -> PolicySpec:
    def make(task: Task, seed: int) -> Policy:
        return ScriptedPolicy([calls(("submit", {"code": source(task)}))])

    return PolicySpec(name=name, kind="trivial", make=make)


def _constant(expression: str) -> Callable[[Task], str]:
    return lambda task: answering(task, expression)


def _echo(task: Task) -> str:
    if task.data["form"] == "program":
        return "import sys\nprint(sys.stdin.read(), end='')\n"
    return answering(task, "args[0] if args else None")


def _level(task: Task) -> int:
    return min(int(task.metadata.get("level", 1)), len(WRONG_RATES) - 1)


def _play(source: str, task: Task, *, submits: bool = True) -> Script:
    level = _level(task)
    edited = "file" in task.data
    if level >= 2 or edited:
        yield calls(("write_file", {"path": FILE, "content": source}))
    if level >= 3:
        yield _try(task)
    if level >= 1 and task.data.get("examples"):
        yield calls(("test", {} if edited else {"code": source}))
    if submits:
        yield calls(("submit", {} if edited else {"code": source}))
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

"""From a seed to a task: draw a problem, draw inputs, run the reference, and keep only what can be graded.

A task is kept when its reference scores 1 and three different near-miss answers score 0, when no constant
answer and no echo of the input is right, and when its statement belongs to the wanted split. Splits are
decided by hashing the statement (family and parameters, without examples): a problem of the training split is
in no other split under any seed, neither as a function nor as a program.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from envs.code.driver import encode
from envs.code.families import FAMILIES, LEVELS
from envs.code.mutation import mutate, sites
from envs.code.problem import Args, Problem, load, program, stdin_text, stdin_words, stdout_text
from envs.tasksets import split_of, task_id
from envs.types import Split, Task
from tools.types import Message

Form = Literal["function", "program", "edit"]
FORMS: tuple[Form, ...] = ("function", "program", "edit")
EDITED = "solution.py"
ENV_ID = "code-v1"
EXAMPLES, HIDDEN, EXTRA_POOL, MOST_HIDDEN = 2, 10, 40, 16
NEAR_MISSES = 3
_RAISED = object()
_FAILURES = (ArithmeticError, AttributeError, LookupError, NameError, RecursionError, TypeError, ValueError)
"""How a mutated reference may fail; failing is then its answer."""


@dataclass(frozen=True, slots=True)
class _Cases:
    examples: list[tuple[Args, Any]]
    hidden: list[tuple[Args, Any]]
    near_misses: list[str]


def make_task(world_seed: int, split: Split, level: int, form: Form | None = None) -> Task:
    """The task of one world seed: redraws until a problem fits; the same arguments give the same task."""
    rng = random.Random(f"{ENV_ID}:{world_seed}:{level}")
    chosen: Form = rng.choice(FORMS) if form is None else form
    for _ in range(1000):
        problem = FAMILIES[rng.choice(LEVELS[level])](rng, level)
        if split_of(f"{problem.family}\n{problem.statement}") != split:
            continue
        cases = _cases(problem, rng)
        if cases is not None:
            return _task(problem, cases, chosen, split, level, world_seed)
    raise RuntimeError(f"no problem of level {level} fits split {split!r} in 1000 draws; this is a bug")


def _outcome(function: Any, args: Args) -> Any:
    """What one of our own sources returns for a private copy of `args`, `_RAISED` if it raises."""
    given = [list(arg) if isinstance(arg, list) else arg for arg in args]
    try:
        return encode(function(*given))
    except _FAILURES:
        return _RAISED


def _cases(problem: Problem, rng: random.Random) -> _Cases | None:
    reference = load(problem.source, problem.name)
    seen: set[str] = set()

    def fresh(pool: Sequence[Args] | None, n: int) -> list[tuple[Args, Any]]:
        found: list[tuple[Args, Any]] = []
        candidates = iter(pool) if pool is not None else (problem.draw(rng) for _ in range(4 * n))
        for args in candidates:
            if len(found) < n and repr(args) not in seen:
                seen.add(repr(args))
                found.append((args, _outcome(reference, args)))
        return found

    examples = fresh(None, EXAMPLES)
    hidden = fresh(problem.edges, len(problem.edges))
    hidden += fresh(None, max(HIDDEN - len(hidden), 6))
    pool = fresh(None, EXTRA_POOL)
    if any(value is _RAISED for _, value in [*examples, *hidden, *pool]):
        raise RuntimeError(
            f"a reference of family {problem.family!r} fails on its own inputs: {problem.source}"
        )
    near_misses = _near_misses(problem, hidden, pool, rng)
    if len(hidden) < 8 or len(near_misses) < NEAR_MISSES or _cheap(hidden):
        return None
    return _Cases(examples, hidden, near_misses)


def _near_misses(
    problem: Problem, hidden: list[tuple[Args, Any]], pool: list[tuple[Args, Any]], rng: random.Random
) -> list[str]:
    """Three mutants that fail; where one passes, an input that betrays it moves to `hidden`."""
    where = sites(problem.source)
    rng.shuffle(where)
    close: list[ast.Module] = []
    far: list[ast.Module] = []
    for site in where[:24]:
        tree = mutate(problem.source, site)
        mutant = load(tree, problem.name)
        right = sum(_outcome(mutant, args) == value for args, value in hidden)
        if right == len(hidden):
            betrayer = next((case for case in pool if _outcome(mutant, case[0]) != case[1]), None)
            if betrayer is None or len(hidden) >= MOST_HIDDEN:
                continue  # equal in effect, as far as can be seen
            pool.remove(betrayer)
            hidden.append(betrayer)
        (close if right > 0 else far).append(tree)
    different: dict[str, None] = {}
    for tree in [*close, *far]:
        if len(different) < NEAR_MISSES:
            different[ast.unparse(tree) + "\n"] = None
    return list(different)


def _cheap(hidden: list[tuple[Args, Any]]) -> bool:
    """Whether a constant or an echo of the first argument would be right everywhere."""
    echo = all(encode(args[0]) == value for args, value in hidden)
    return echo or all(value == hidden[0][1] for _, value in hidden)


def _task(problem: Problem, cases: _Cases, form: Form, split: Split, level: int, world_seed: int) -> Task:
    if form == "program":
        shown, tests = (
            [[stdin_text(problem, args), stdout_text(problem, value)] for args, value in pairs]
            for pairs in (cases.examples, cases.hidden)
        )
        solutions = [program(problem, source) for source in (problem.source, *cases.near_misses)]
    else:
        shown, tests = (
            [[[encode(arg) for arg in args], value] for args, value in pairs]
            for pairs in (cases.examples, cases.hidden)
        )
        solutions = [problem.source, *cases.near_misses]
    prompt: tuple[Message, ...] = ({"role": "user", "content": _prompt(problem, cases, form)},)
    data: dict[str, Any] = {
        "form": "program" if form == "program" else "function",
        "entry_point": "" if form == "program" else problem.name,
        "preamble": "",
        "examples": shown,
    }
    if form == "edit":
        data |= {"files": {EDITED: cases.near_misses[0]}, "file": EDITED}
        solutions.remove(cases.near_misses[0])  # it is shown, and so no part of the answer
    answer = {
        "tests": [{"input": given, "expected": value} for given, value in tests],
        "rule": {"name": "text" if form == "program" else "exact", "tolerance": None},
        "solution": solutions[0],
        "near_misses": solutions[1:],
    }
    return Task(
        id=task_id(ENV_ID, prompt, data, answer),
        env=ENV_ID,
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        seed=world_seed,
        metadata={
            "family": problem.family,
            "level": level,
            "source": "generated",
            "statement": problem.statement,
        },
    )


def _prompt(problem: Problem, cases: _Cases, form: Form) -> str:
    parts = [problem.statement]
    if form == "program":
        parts += ["Write a Python program for this.", stdin_words(problem)]
        for args, value in cases.examples:
            parts.append(
                f"Input:\n{stdin_text(problem, args)}Output:\n{stdout_text(problem, value)}".rstrip("\n")
            )
    else:
        if form == "edit":
            parts += [f"The file {EDITED} holds this Python function, but it is wrong:", problem.signature]
        else:
            parts += ["Write this Python function:", problem.signature]
        shown = []
        for args, value in cases.examples:
            shown.append(f"{problem.name}({', '.join(map(repr, args))}) == {value!r}")
        parts.append("\n".join(shown))
    if form == "edit":
        parts.append("Mend the file and hand it in with submit().")
    else:
        parts.append("Submit the whole source with submit(code).")
    return "\n\n".join(parts)

"""From a seed to a task: draw a package, break it, hide the tests that fail, say what is wrong without saying where."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envs.code.driver import decode
from envs.swe.generated.breaking import Bug, draw_bug
from envs.swe.generated.package import Function, Package, draw_package
from envs.swe.generated.running import load, outcome
from envs.swe.generated.suite import Case, suite, test_files
from envs.tasksets import task_id
from envs.types import Split, Task
from tools.types import Message

ENV_ID = "swe-v1"
_TRIES = 60
_LONG = 12


@dataclass(frozen=True, slots=True)
class Level:
    """How hard a generated task is."""

    modules: int
    functions: int
    """In each module."""
    problems: int
    """Level of the problems in `envs.code.families`."""
    bugs: tuple[bool, ...]
    """One a bug: whether the body is removed, rather than changed in one place."""
    named: bool
    """Whether the statement names the broken function; else it names a report that shows the symptom."""


LEVELS: tuple[Level, ...] = (
    Level(3, 3, 1, (False,), True),
    Level(4, 3, 1, (False,), False),
    Level(5, 3, 2, (False, False), False),
    Level(6, 3, 3, (False, False, True), False),
)


@functools.lru_cache(maxsize=4096)
def make_task(world_seed: int, split: Split, level: int) -> Task:
    """The task of one world seed: redraws until a package fits; the same arguments give the same task."""
    rng = random.Random(f"{ENV_ID}:{world_seed}:{level}")
    rule = LEVELS[level]
    for _ in range(_TRIES):
        package = draw_package(rng, split, rule.problems, rule.modules, rule.functions)
        cases = suite(package, load(package.modules), rng)
        bugs = _bugs(package, cases, rule, rng)
        task = _task(package, cases, bugs, level, split, world_seed, rng) if bugs else None
        if task is not None:
            return task
    raise RuntimeError(f"no task of level {level} fits split {split!r} in {_TRIES} draws; this is a bug")


def _bugs(package: Package, cases: Sequence[Case], rule: Level, rng: random.Random) -> list[Bug]:
    """As many bugs as the level has, in different modules; none when the package has no room for them."""
    bugs: list[Bug] = []
    candidates = rng.sample(package.functions, len(package.functions))
    for removed in rule.bugs:
        for function in candidates:
            if function.module not in {bug.function.module for bug in bugs}:
                bug = draw_bug(package, function, cases, rng, removed=removed)
                if bug is not None:
                    bugs.append(bug)
                    break
    return bugs if len(bugs) == len(rule.bugs) else []


def _task(
    package: Package,
    cases: Sequence[Case],
    bugs: Sequence[Bug],
    level: int,
    split: Split,
    seed: int,
    rng: random.Random,
) -> Task | None:
    modules = {**package.modules, **{bug.function.module: bug.source for bug in bugs}}
    broken = load(modules)
    failing = [case for case in cases if not case.passes(broken)]
    passing = [case for case in cases if case.passes(broken)]
    shown = test_files(package.name, passing)
    symptoms = [_symptom(package, modules, bug, cases, LEVELS[level].named, rng) for bug in bugs]
    if not passing or any(symptom is None for symptom in symptoms):
        return None
    data = {
        "package": package.name,
        "files": {**_source_files(package.name, modules), **shown},
    }
    answer = {
        "edits": _edits(package.name, bugs),
        "trusted": test_files(package.name, cases),
        "fail_to_pass": [case.id for case in failing],
        "pass_to_pass": [case.id for case in passing],
        "probes": {
            f"{package.name}.{bug.function.module}:{bug.function.name}": list(bug.probes) for bug in bugs
        },
    }
    prompt: tuple[Message, ...] = (
        {"role": "user", "content": statement(package.name, [str(s) for s in symptoms])},
    )
    if _leaks(answer, prompt[0]["content"], data):
        return None
    return Task(
        id=task_id(ENV_ID, prompt, data, answer),
        env=ENV_ID,
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        seed=seed,
        metadata={
            "level": level,
            "source": "generated",
            "bugs": [bug.kind for bug in bugs],
            "evidence": "replayed",
        },
    )


def _edits(package: str, bugs: Sequence[Bug]) -> dict[str, list[dict[str, Any]]]:
    return {
        f"{package}/{bug.function.module}.py": [{"old": bug.old, "new": bug.new, "wrong": list(bug.wrong)}]
        for bug in bugs
    }


def _source_files(package: str, modules: dict[str, str]) -> dict[str, str]:
    listed = "".join(f"* `{package}.{name}`\n" for name in modules)
    return {
        "README.md": f"# {package}\n\n{listed}\nRun the tests with `python3 -m pytest`.\n",
        "pyproject.toml": f'[project]\nname = "{package}"\nversion = "1.0"\n\n[tool.pytest.ini_options]\n'
        'pythonpath = ["."]\ntestpaths = ["tests"]\n',
        f"{package}/__init__.py": f'"""The package {package}."""\n',
        **{f"{package}/{name}.py": source for name, source in modules.items()},
    }


def _symptom(
    package: Package,
    modules: dict[str, str],
    bug: Bug,
    cases: Sequence[Case],
    named: bool,
    rng: random.Random,
) -> str | None:
    """One call that shows a bug, not among the tests: of the function itself, or of the report that uses it."""
    caller = bug.function
    if not named:
        caller = next(report for report in package.reports if bug.function.name in report.calls)
    right = load({**modules, bug.function.module: package.modules[bug.function.module]})
    broken, whole = load(modules), load(package.modules)
    taken = [case.args for case in cases if case.function == caller.name]
    for _ in range(200):
        args = caller.draw(rng)
        if args in taken:
            continue
        expected, seen = (_call(loaded, caller, args) for loaded in (whole, broken))
        if "value" in expected and _call(right, caller, args) != seen:
            called = f"{package.name}.{caller.module}.{caller.name}({', '.join(map(repr, args))})"
            return f"`{called}` {_told(seen)}; it should return `{decode(expected['value'])!r}`."
    return None


def _call(loaded: Any, function: Function, args: Any) -> dict[str, Any]:
    return outcome(getattr(loaded[function.module], function.name), args)


def _told(seen: dict[str, Any]) -> str:
    return f"raises {seen['raised']}" if "raised" in seen else f"returns `{decode(seen['value'])!r}`"


def statement(package: str, symptoms: Sequence[str]) -> str:
    """The first message: what is wrong, and how the work is judged."""
    several = "There are several bugs in" if len(symptoms) > 1 else "There is a bug in"
    listed = "\n".join(f"* {symptom}" for symptom in symptoms)
    return (
        f"{several} the Python package `{package}`, whose repository is your working directory:\n\n{listed}\n\n"
        "Other inputs are wrong too. Docstrings and the remaining code say what is meant. Repair the package's source, "
        "then call submit. The source is judged by tests that you cannot see and by calls of the repaired functions; "
        "changes to tests and to configuration do not count."
    )


def _leaks(answer: dict[str, Any], prompt: str, data: dict[str, Any]) -> bool:
    """Whether a long text of the answer can be read off the prompt, or one of a probe off the repository."""
    shown = "\n".join(data["files"].values())
    probes = [text for text in _texts(answer["probes"]) if len(text) >= _LONG]
    return any(text in prompt for text in _texts(answer) if len(text) >= _LONG) or any(
        text in shown for text in probes
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)

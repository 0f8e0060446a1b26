"""A drawn package: modules of functions, reports that call them, and a command table over all.

Functions come from the problem families of `code-v1`: each has a statement (its docstring), a reference and a source
of inputs. A problem belongs to the split that its statement hashes to, so no function is in two splits.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from envs.code.families import FAMILIES
from envs.code.families.draw import WORDS
from envs.code.problem import Args, Problem
from envs.tasksets import split_of
from envs.types import Split

_MODULES = {
    "numbers": ("series", "figures", "sequences"),
    "texts": ("wording", "phrases", "letters"),
    "counting": ("streaks", "tally", "windows"),
    "digits": ("divisors", "integers", "places"),
    "parsing": ("notation", "scripts", "records"),
    "dates": ("schedule", "deadlines", "days"),
    "dynamic": ("plans", "routes", "costs"),
}
_SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ren",
    "tor",
    "vel",
    "sa",
    "du",
    "pin",
    "gar",
    "hol",
    "bex",
    "zu",
    "nim",
    "fal",
    "quo",
)
_NAMES = tuple(word for word in WORDS if len(word) >= 3)
_REPORT = "reports"
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the package and where inputs for it come from."""

    module: str
    name: str
    source: str
    draw: Callable[[random.Random], Args]
    edges: tuple[Args, ...] = ()
    calls: tuple[str, ...] = ()
    """Names of the functions that it calls, for reports."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package without bugs; `modules` maps names to sources, each importing earlier ones only."""

    name: str
    modules: dict[str, str]
    functions: tuple[Function, ...]
    reports: tuple[Function, ...]


def draw_package(rng: random.Random, split: Split, level: int, modules: int, each: int) -> Package:
    """Draw a package of `modules` modules with `each` functions, whose problems are of `level` or easier."""
    families = rng.sample(_families(level), modules)
    names = iter(rng.sample(_NAMES, modules * each))
    functions: list[Function] = []
    sources: dict[str, str] = {}
    for family in families:
        module = rng.choice(_MODULES[family])
        made = [_function(_problem(rng, family, level, split), module, next(names)) for _ in range(each)]
        sources[module] = _module_source(
            family, [function for function, _ in made], set().union(*(imports for _, imports in made))
        )
        functions += [function for function, _ in made]
    reports = _reports(rng, functions, rng.sample(_NAMES, len(functions) // 2))
    sources[_REPORT] = _report_source(sources, reports)
    return Package(_package_name(rng, split), sources, tuple(functions), tuple(reports))


def _families(level: int) -> list[str]:
    return [name for name in FAMILIES if level > 0 or name in ("numbers", "texts", "counting", "digits")]


def _problem(rng: random.Random, family: str, level: int, split: Split) -> Problem:
    for _ in range(_DRAWS):
        problem = FAMILIES[family](rng, level)
        if split_of(f"{problem.family}\n{problem.statement}") == split:
            return problem
    raise RuntimeError(f"no problem of family {family!r} fits split {split!r}; this is a bug")


def _package_name(rng: random.Random, split: Split) -> str:
    for _ in range(_DRAWS):
        name = "".join(rng.choices(_SYLLABLES, k=3)) + rng.choice(("kit", "lib", "base", "works"))
        if split_of(f"package:{name}") == split:
            return name
    raise RuntimeError(f"no package name fits split {split!r}; this is a bug")


def _function(problem: Problem, module: str, word: str) -> tuple[Function, set[str]]:
    """The problem's reference under a name of its own, with its statement as docstring; and its imports."""
    tree = ast.parse(problem.source)
    imports = {ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)}
    bodies = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    name = f"{problem.name}_{word}"
    renamed = {node.name: f"_{node.name}_{word}" for node in bodies} | {problem.name: name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in renamed:
            node.id = renamed[node.id]
        elif isinstance(node, ast.FunctionDef) and node.name in renamed:
            node.name = renamed[node.name]
    text = "\n\n\n".join(ast.unparse(node) for node in bodies if node.name != name)
    main = next(ast.unparse(node) for node in bodies if node.name == name)
    head, _, body = main.partition("\n")
    whole = f"{head}\n{_docstring(problem.statement)}\n{body}"
    source = f"{text}\n\n\n{whole}" if text else whole
    return Function(module, name, source, problem.draw, problem.edges), imports


def _docstring(text: str) -> str:
    lines = textwrap.wrap(text.replace("\\", "\\\\").replace('"""', "'''"), 92)
    if len(lines) == 1 and not lines[0].endswith('"'):
        return f'    """{lines[0]}"""'
    return '    """' + "\n    ".join(lines) + '\n    """'


def _module_source(family: str, functions: list[Function], imports: set[str]) -> str:
    head = [f'"""Functions about {family}."""', "", *sorted(imports), *([""] if imports else [])]
    return "\n".join(head) + "\n" + "\n\n\n".join(function.source for function in functions) + "\n"


def _reports(rng: random.Random, functions: list[Function], words: list[str]) -> list[Function]:
    """Reports of two or three functions each; every function is in one."""
    shuffled = rng.sample(functions, len(functions))
    parts = [shuffled[at :: len(words)] for at in range(len(words))]
    return [_report(f"report_{word}", part) for word, part in zip(words, parts, strict=True)]


def _report(name: str, parts: list[Function]) -> Function:
    keys = ("first", "second", "third")
    parameters: list[str] = []
    lines: list[str] = []
    for at, part in enumerate(parts):
        main = ast.parse(part.source).body[-1]
        assert isinstance(main, ast.FunctionDef)
        names = [f"{arg.arg}_{at + 1}" for arg in main.args.args]
        parameters += names
        lines.append(f"    {keys[at]} = {part.module}.{part.name}({', '.join(names)})")
    result = ", ".join(f'"{key}": {key}' for key in keys[: len(parts)])
    source = "\n".join(
        [
            f"def {name}({', '.join(parameters)}):",
            f'    """Figures that belong together, under {" and ".join(keys[: len(parts)])}."""',
            *lines,
            f"    return {{{result}}}",
        ]
    )

    def draw(rng: random.Random) -> Args:
        return tuple(arg for part in parts for arg in part.draw(rng))

    return Function(_REPORT, name, source, draw, calls=tuple(part.name for part in parts))


def _report_source(modules: dict[str, str], reports: list[Function]) -> str:
    head = ['"""Reports over the other modules."""', "", f"from . import {', '.join(sorted(modules))}", ""]
    table = ["REPORTS = {", *(f'    "{report.name}": {report.name},' for report in reports), "}"]
    run = [
        "def run(name, *args):",
        '    """Run a report by name; a name that is not known raises a KeyError."""',
        "    if name not in REPORTS:",
        '        raise KeyError(f"no report is called {name!r}")',
        "    return REPORTS[name](*args)",
    ]
    parts = [report.source for report in reports] + ["\n".join(table), "\n".join(run)]
    return "\n".join(head) + "\n\n" + "\n\n\n".join(parts) + "\n"

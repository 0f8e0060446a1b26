"""A generated problem: a statement, a reference function, and where its inputs come from.

A family returns a `Problem` for a generator and a level. Everything random about it is in `statement` and
`source`; examples and hidden inputs are drawn later from `draw`. References are our own templates, so running
them on the host is safe; they hold no `while` loop, so that a mutated one ends too (see `mutation.py`).
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["int", "str", "bool", "list[int]", "list[str]"]
Args = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem with its parameters filled in."""

    family: str
    name: str
    """Of the function to write."""
    parameters: tuple[tuple[str, Kind], ...]
    returns: Kind
    statement: str
    """What to compute, in words that name the parameters."""
    source: str
    """The reference: `def name(...)`, no `while`."""
    draw: Callable[[random.Random], Args]
    """A fresh input."""
    edges: tuple[Args, ...] = ()
    """Inputs that must be among the hidden ones: empty, smallest, boundary."""

    @property
    def signature(self) -> str:
        """The `def` line with types."""
        inner = ", ".join(f"{name}: {kind}" for name, kind in self.parameters)
        return f"def {self.name}({inner}) -> {self.returns}:"


def function(problem_signature: str, *lines: str) -> str:
    """Source of a function from its `def` line and the unindented lines of its body."""
    return "\n".join([problem_signature, *(f"    {line}" for line in lines)]) + "\n"


def load(source: str | ast.Module, name: str) -> Callable[..., Any]:
    """Compile one of our own sources and return its function `name`."""
    space: dict[str, Any] = {"__name__": "reference"}
    exec(compile(source, "reference.py", "exec"), space)
    loaded: Callable[..., Any] = space[name]
    return loaded


# ---- the same problem as a program that reads standard input

_READ = {
    "int": "int(lines.pop(0))",
    "str": "lines.pop(0)",
    "bool": "lines.pop(0) == 'yes'",
    "list[int]": "[int(word) for word in lines.pop(0).split()]",
    "list[str]": "[lines.pop(0) for _ in range(int(lines.pop(0)))]",
}
_PRINT = {
    "int": "print(result)",
    "str": "print(result)",
    "bool": "print('yes' if result else 'no')",
    "list[int]": "print(*result)",
    "list[str]": "print(*result, sep='\\n')",
}
_READ_WORDS = {
    "int": "one line with a number",
    "str": "one line of text",
    "bool": "one line, yes or no",
    "list[int]": "one line of numbers separated by spaces (it may be empty)",
    "list[str]": "a line with their count, then one a line",
}
_PRINT_WORDS = {
    "int": "the number",
    "str": "the text",
    "bool": "yes or no",
    "list[int]": "the numbers on one line, separated by spaces",
    "list[str]": "the texts, one a line",
}


def stdin_words(problem: Problem) -> str:
    """The input and output format of the program form, for the prompt."""
    reads = "; ".join(f"{name}: {_READ_WORDS[kind]}" for name, kind in problem.parameters)
    return f"Standard input: {reads}.\nStandard output: {_PRINT_WORDS[problem.returns]}."


def program(problem: Problem, source: str) -> str:
    """The program form of a solution: read the arguments, call the function, print the result."""
    reads = [f"{name} = {_READ[kind]}" for name, kind in problem.parameters]
    call = f"result = {problem.name}({', '.join(name for name, _ in problem.parameters)})"
    head = ["import sys", "", "", source.rstrip("\n"), "", "", "lines = sys.stdin.read().split('\\n')"]
    return "\n".join([*head, *reads, call, _PRINT[problem.returns]]) + "\n"


def stdin_text(problem: Problem, args: Args) -> str:
    """What the program form reads for these arguments."""
    return "".join(
        _text(value, kind, counted=True) + "\n"
        for value, (_, kind) in zip(args, problem.parameters, strict=True)
    )


def stdout_text(problem: Problem, result: Any) -> str:
    """What the program form prints for this result."""
    return _text(result, problem.returns, counted=False) + "\n"


def _text(value: Any, kind: Kind, *, counted: bool) -> str:
    if kind == "bool":
        return "yes" if value else "no"
    if kind == "list[int]":
        return " ".join(map(str, value))
    if kind == "list[str]":
        return "\n".join([str(len(value)), *value] if counted else value)
    return str(value)

"""What contest formats share: a program's or a method's tests, and the task made of them."""

from __future__ import annotations

from typing import Any

from envs.code.driver import encode
from envs.formats import BadRow
from envs.tasksets import task_id
from envs.types import Split, Task
from tools.types import Message

PRELUDE = """from typing import *
from collections import *
from itertools import *
from functools import *
from heapq import *
from bisect import *
from math import *
import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys
"""
"""What contest sites import for a solution."""


def contest_task(
    *,
    source: str,
    name: str,
    words: str,
    starter: str,
    method: str,
    tests: list[tuple[Any, Any]],
    examples: list[tuple[Any, Any]],
    solution: str | None,
    split: Split,
    metadata: dict[str, Any] | None = None,
) -> Task:
    """The task of one contest problem.

    Args:
        source: the format.
        name: of the problem in its file.
        words: the statement.
        starter: code that a solution begins with; shown, and empty for programs.
        method: the function to call, of a class `Solution` where the starter has one; empty for programs.
        tests: pairs of input and output: texts for programs, argument list and result for methods.
        examples: those of them that may be shown.
        solution: a right one, None where the file has none.
        split: of the task.
        metadata: further facts.
    """
    form = "function" if method else "program"
    parts = [words.strip()]
    if starter.strip():
        parts.append(f"Start from this code:\n{starter.strip()}")
    elif not method:
        parts.append("Write a Python program that reads standard input and writes standard output.")
    parts.append("Submit the whole source with submit(code).")
    prompt: tuple[Message, ...] = ({"role": "user", "content": "\n\n".join(parts)},)
    in_class = "class Solution" in (starter + (solution or "" if not starter.strip() else ""))
    data = {
        "form": form,
        "entry_point": f"Solution.{method}" if method and in_class else method,
        "preamble": PRELUDE if method else "",
        "examples": [_pair(given, expected, form) for given, expected in examples],
    }
    pairs = [_pair(given, expected, form) for given, expected in tests]
    answer = {
        "tests": [{"input": given, "expected": expected} for given, expected in pairs],
        "rule": {"name": "json" if method else "stdio", "tolerance": None},
        "solution": solution,
        "near_misses": [],
    }
    return Task(
        id=task_id("code-v1", prompt, data, answer),
        env="code-v1",
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        metadata={"family": source, "source": source, "name": name, **(metadata or {})},
    )


def _pair(given: Any, expected: Any, form: str) -> list[Any]:
    if form == "program":
        return [text(given), text(expected)]
    try:
        return [[encode(argument) for argument in given], encode(expected)]
    except (TypeError, ValueError) as error:
        raise BadRow("inputs", f"an input is the list of a call's arguments: {error}") from error


def text(value: Any) -> str:
    """The text of an input or output, which some files hold as a list of lines.

    Raises:
        BadRow: it is neither.
    """
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "\n".join(value)
    if not isinstance(value, str):
        raise BadRow("inputs", f"a program's input and output are text, got {type(value).__name__}")
    return value if value.endswith("\n") else value + "\n"

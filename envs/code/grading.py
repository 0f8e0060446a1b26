"""Judging a submission: a fresh sandbox runs it on hidden inputs, the host compares the results.

    task.answer ── inputs ──> fresh sandbox: driver.py, a child an input ── results ──> host: decode, compare
          └── expected outputs: never leave the host ─────────────────────────────────┘

The candidate can reach everything in that sandbox: the driver, its memory, the channel, the nonce. It can
forge any answer there, but the right one is not there to be found, so a forger has to solve the task. A result
that is missing, extra, malformed, of a subclass or of another type counts as wrong. A time or memory limit
that the submission hits is its own failure; only a lost sandbox is a fault (`SandboxLost` passes through).
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from envs.code import driver
from envs.code.comparison import Rule, agree
from envs.errors import TaskError
from envs.types import Reward, RewardComponent, Task
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost
from sandbox.types import MIB, Limits, SandboxSpec
from tools.errors import ToolError

CPU_S, WALL_S, TOTAL_S = 2, 12.0, 20.0
"""Limits of one hidden input, in processor and in wall-clock seconds, and of all of them together. The last one
leaves room beneath a harness's deadline (`rollout.env_timeout_s`): a submission that sleeps fails, it is no fault."""
MAX_GROWTH, MIN_RESULT_CHARS = 32, 20_000
"""A result longer than `MAX_GROWTH` times the expected one's JSON (and than the minimum) is wrong unread: reading
100,000 integers of one hash into a set takes the host minutes."""
OUT_OF_TIME = f"stopped after {TOTAL_S:g} s"
PYTHON = ("python3", "-B", "-s")
"""With `PYTHONHASHSEED` (see `SPEC_ENV`), which `-I` would ignore."""
SPEC_ENV = {
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LC_ALL": "C.UTF-8",
}


Pay = Literal["binary", "fraction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a submission did; `reason` is for people and tells nothing of the hidden inputs."""

    passed: int
    total: int
    reason: str = ""
    timed_out: bool = False
    """Whether a wall-clock limit decided: a crowded machine may have."""

    @property
    def solved(self) -> bool:
        """Whether every input passed."""
        return 0 < self.total == self.passed

    def reward(self, pay: Pay = "binary") -> Reward:
        """`tests` is 1 when every hidden input passed, else 0; `fraction` is the share that passed. One is paid."""
        share = self.passed / self.total if self.total else 0.0
        return Reward(
            (
                RewardComponent(name="tests", value=float(self.solved), weight=float(pay == "binary")),
                RewardComponent(name="fraction", value=share, weight=float(pay == "fraction")),
            )
        )


def grading_spec() -> SandboxSpec:
    """A sandbox that holds the driver and nothing else."""
    source = Path(driver.__file__).read_bytes()
    limits = Limits(timeout_s=TOTAL_S, max_output_bytes=8 * MIB, kill_output_bytes=16 * MIB)
    return SandboxSpec(limits=limits, files={"driver.py": source}, env=SPEC_ENV)


def ask_driver(sandbox: Sandbox, request: Mapping[str, Any]) -> dict[str, Any] | str:
    """Run the driver in a fresh sandbox; its answer, or in one line why there is no well-formed one.

    Raises:
        SandboxLost: the sandbox itself is gone.
    """
    nonce = secrets.token_hex(16)
    stdin = json.dumps({**request, "nonce": nonce}).encode()
    result = sandbox.exec([*PYTHON, "driver.py"], stdin=stdin, timeout_s=TOTAL_S)
    if result.reason == "sandbox_lost":
        raise SandboxLost("the grading sandbox was lost while a submission ran")
    if result.reason == "timeout":
        return OUT_OF_TIME
    if result.reason != "ok":
        return f"stopped by the limit {result.reason!r}"
    if result.exit_code != 0 or result.stdout.truncated_bytes:
        return f"the driver ended with status {result.exit_code}"
    try:
        answer = json.loads(result.stdout.head + result.stdout.tail)
    except (ValueError, RecursionError):
        return "the driver's answer is not one JSON line"
    if not isinstance(answer, dict) or answer.get("nonce") != nonce:
        return "the driver's answer does not carry the nonce"
    return answer


def judge(sandbox: Sandbox, task: Task, submission: str) -> Verdict:
    """Run a submission on the hidden inputs of a task in `sandbox`, which must be fresh, and compare.

    Raises:
        SandboxLost: the sandbox itself is gone.
        TaskError: the task's answer has no tests or lacks a field.
    """
    try:
        form, tests = task.data["form"], task.answer["tests"]
        rules = [Rule(**(test.get("rule") or task.answer["rule"])) for test in tests]
        request = {
            "kind": form,
            "source": task.data.get("preamble", "") + submission,
            "entry_point": task.data["entry_point"],
            "inputs": [test["input"] for test in tests],
            "cpu_s": CPU_S,
            "wall_s": WALL_S,
        }
        expected = [
            test["expected"] if form == "program" else driver.decode(test["expected"]) for test in tests
        ]
        longest = [max(MIN_RESULT_CHARS, MAX_GROWTH * len(json.dumps(test["expected"]))) for test in tests]
    except (KeyError, TypeError, ValueError) as error:
        raise TaskError(f"task {task.id} cannot be graded: {type(error).__name__} {error}") from error
    if not tests:
        raise TaskError(f"task {task.id} cannot be graded: it has no tests")
    answer = ask_driver(sandbox, request)
    if isinstance(answer, str):
        return Verdict(passed=0, total=len(tests), reason=answer, timed_out=answer == OUT_OF_TIME)
    results = answer.get("results")
    if not isinstance(results, list) or len(results) > len(tests):
        return Verdict(passed=0, total=len(tests), reason="more results than inputs")
    right = [
        _right(result, value, rule, form, chars)
        for result, value, rule, chars in zip(results, expected, rules, longest, strict=False)
    ]
    late = any(isinstance(result, dict) and result.get("error") == "timeout" for result in results)
    reason = _why(results, right, len(tests))
    return Verdict(passed=sum(right), total=len(tests), reason=reason, timed_out=late)


def judge_examples(sandbox: Sandbox, task: Task, source: str) -> tuple[Verdict, str]:
    """Run a source on the public examples in `sandbox`, which must be fresh; the verdict, and a line for each.

    Raises:
        SandboxLost: the sandbox itself is gone.
        ToolError: the task has no examples.
    """
    examples = task.data.get("examples") or []
    if not examples:
        raise ToolError("this task has no examples to run")
    rule = {"name": "text", "tolerance": None} if task.data["form"] == "program" else task.answer["rule"]
    tests = [{"input": given, "expected": expected, "rule": rule} for given, expected in examples]
    public = dataclasses.replace(task, answer={"tests": tests, "rule": rule})
    verdict = judge(sandbox, public, source)
    told = f"{verdict.passed} of {verdict.total} examples pass"
    return verdict, f"{told}; {verdict.reason.replace('hidden input', 'example')}" if verdict.reason else told


def _right(result: Any, expected: Any, rule: Rule, form: str, longest: int) -> bool:
    """Whether one result is right; whatever is malformed, or longer than `longest`, is not."""
    if not isinstance(result, dict) or result.get("exit") != 0 or not isinstance(result.get("output"), str):
        return False
    output = result["output"]
    try:
        if form == "program":
            return agree(expected, output, rule)
        return len(output) <= longest and agree(expected, driver.decode(json.loads(output)), rule)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False


def _why(results: Sequence[Any], right: Sequence[bool], total: int) -> str:
    if all(right) and len(right) == total:
        return ""
    at = right.index(False) if False in right else len(right)
    result = results[at] if at < len(results) else None
    if not isinstance(result, dict):
        return f"hidden input {at + 1}: no result"
    if "error" in result:
        return f"hidden input {at + 1}: {ascii(result['error'])[1:-1]:.40}"  # a forger's text may be anything
    if result.get("exit") != 0:
        return f"hidden input {at + 1}: ended with status {result.get('exit')!a:.40}"
    return f"hidden input {at + 1}: wrong result"

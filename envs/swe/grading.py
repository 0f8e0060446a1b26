"""Judging a patch: twice, in two fresh sandboxes, and both verdicts must agree.

    patch ─> original + patch + trusted tests ─> sandbox 1: pytest, canaries ── JUnit, exit code ──> host: by node id
         └─> original + patch ────────────────> sandbox 2: recorded calls ───── results ──────────> host: compare

Code under test shares pytest's process and can make it say anything. Canaries, the exit code and the count of each
test's entries make that hard, not impossible; hence the second verdict, whose expected results never leave the host.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from envs.errors import TaskError
from envs.swe.evidence import Evidence, Replay, TestRun
from envs.swe.patch import Patch, fitting
from envs.swe.pytest_runs import Opener, PytestResult, PytestRun, run_pytest
from envs.swe.replaying import replay, same
from envs.swe.repository import files_of, import_paths, protected_files
from envs.types import Task

TESTS_CPU_S, TESTS_WALL_S = 15, 20.0
"""Twice 28 s with the replay (a wall-clock verdict is made again) stay beneath a harness's deadline of 60 s."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The grader's part of a task."""

    trusted: Mapping[str, bytes]
    """Tests and what they read, restored over every patch."""
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    probes: Mapping[str, Sequence[Mapping[str, Any]]]
    """By `module:function`."""
    plugins: tuple[str, ...] = ()
    """Conftest files among `trusted`, loaded as plugins: `--noconftest` keeps all others out."""
    import_mode: str = "importlib"

    @classmethod
    def of(cls, task: Task) -> Answer:
        """Read `task.answer`.

        Raises:
            TaskError: a field is missing or of another type.
        """
        try:
            given = task.answer
            answer = cls(
                {
                    **protected_files(task),
                    **{str(p): str(text).encode() for p, text in given["trusted"].items()},
                },
                tuple(map(str, given["fail_to_pass"])),
                tuple(map(str, given["pass_to_pass"])),
                {str(name): list(probes) for name, probes in given.get("probes", {}).items()},
                tuple(map(str, given.get("plugins", ()))),
                str(given.get("import_mode", "importlib")),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise TaskError(f"task {task.id} cannot be graded: {type(error).__name__} {error}") from error
        if not answer.fail_to_pass:
            raise TaskError(
                f"task {task.id} cannot be graded: it names no test that must turn from red to green"
            )
        return answer


def judge(task: Task, patch: Patch, opened: Opener, backend: str) -> Evidence:
    """Both verdicts on a patch; `opened` starts a fresh sandbox and closes it.

    Raises:
        SandboxLost: a sandbox itself is gone.
        TaskError: the task cannot be graded.
    """
    answer = Answer.of(task)
    original = files_of(task)
    patched = patch.apply(original)
    evidence = Evidence(
        kind="replayed" if answer.probes else "in_process",
        fail_to_pass=len(answer.fail_to_pass),
        pass_to_pass=len(answer.pass_to_pass),
        tests=_run_tests(task, answer, fitting({**patched, **answer.trusted}), opened, backend),
        changed=tuple(sorted(patch.changes)),
        dropped=patch.dropped,
        digest=patch.digest(),
        diff=patch.diff(original),
    )
    if evidence.kind == "replayed" and replace(evidence, kind="in_process").resolved:
        return replace(evidence, replay=_replay(task, answer, patched, opened))
    return evidence


# ------------------------------------------------------------------------------------- the first verdict


@dataclass(frozen=True, slots=True)
class _Canaries:
    """Two tests that import the package as the others do: one must fail, one must pass. Only the host knows which."""

    files: Mapping[str, bytes]
    failing: str
    passing: str


def _canaries(package: str, folder: str) -> _Canaries:
    draw = random.SystemRandom()
    files: dict[str, bytes] = {}
    names = []
    for fails in (True, False):
        word, value = secrets.token_hex(6), draw.randrange(10**6)
        path = f"{folder}/test_{word}.py".lstrip("/")
        other = value + draw.randrange(1, 10**6) if fails else value
        files[path] = f"import {package}\n\n\ndef test_{word}():\n    assert {value} == {other}\n".encode()
        names.append(f"{path}::test_{word}")
    return _Canaries(files, names[0], names[1])


def _run_tests(
    task: Task, answer: Answer, files: Mapping[str, bytes], opened: Opener, backend: str
) -> TestRun:
    wanted = (*answer.fail_to_pass, *answer.pass_to_pass)
    tests = list(dict.fromkeys(node.partition("::")[0] for node in wanted))
    canaries = _canaries(str(task.data["package"]), tests[0].rpartition("/")[0])
    run = PytestRun(
        files={**files, **canaries.files},
        tests=[*tests, *canaries.files],
        roots=import_paths(task),
        plugins=[path.removesuffix(".py").replace("/", ".") for path in answer.plugins],
        import_mode=answer.import_mode,
        cpu_s=TESTS_CPU_S,
        wall_s=TESTS_WALL_S,
    )
    result = run_pytest(run, opened, backend)
    if result.done.reason != "ok":
        limit = result.done.reason
        return TestRun(reason=f"stopped by the limit {limit!r}", timed_out=limit == "timeout")
    return _believed(answer, canaries, result)


def _believed(answer: Answer, canaries: _Canaries, result: PytestResult) -> TestRun:
    """Count what passed, if canaries and exit code fit: the failing canary alone makes pytest exit with 1."""
    if result.seen is None:
        return TestRun(reason="pytest left no report that can be read")
    passed = [
        sum(result.entries(node) == ["passed"] for node in nodes)
        for nodes in (answer.fail_to_pass, answer.pass_to_pass)
    ]
    reason = ""
    if result.entries(canaries.failing) != ["failed"] or result.entries(canaries.passing) != ["passed"]:
        reason = "the canaries were not reported as they are"
    elif result.done.exit_code != 1:
        reason = f"pytest ended with {result.done.exit_code}, with a failing test it ends with 1"
    return TestRun(fail_to_pass=passed[0], pass_to_pass=passed[1], sound=not reason, reason=reason)


# ------------------------------------------------------------------------------------ the second verdict


def _replay(task: Task, answer: Answer, files: Mapping[str, bytes], opened: Opener) -> Replay:
    probes = [(name, probe) for name, probes in answer.probes.items() for probe in probes]
    calls = [
        {
            "module": name.partition(":")[0],
            "function": name.partition(":")[2],
            "args": probe["args"],
            "kwargs": probe["kwargs"],
        }
        for name, probe in probes
    ]
    replayed = replay(files, import_paths(task), calls, opened)
    passed = sum(
        same(probe["expected"], result) for (_, probe), result in zip(probes, replayed.results, strict=False)
    )
    return Replay(passed=passed, total=len(probes), timed_out=replayed.timed_out, reason=replayed.reason)

"""Judging a patch: twice, in two fresh sandboxes, and both verdicts must agree.

    patch ─> original + patch + trusted tests ─> sandbox 1: pytest, canaries ── JUnit, exit code ──> host: by node id
         └─> original + patch ────────────────> sandbox 2: recorded calls ───── results ──────────> host: compare

Code under test shares pytest's process and can make it say anything. Canaries, the exit code and the count of each
test's entries make that hard, not impossible; hence the second verdict, whose expected results never leave the host.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envs.code import driver
from envs.code.comparison import Rule, agree
from envs.errors import TaskError
from envs.swe import junit, replay_calls, run_tests
from envs.swe.evidence import Evidence, Replay, TestRun
from envs.swe.kit import PYTHON, kit
from envs.swe.patch import Patch, fitting
from envs.swe.repository import HOME, KIT, REPO, files_of, import_paths, placed
from envs.types import Task
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.files import WORKSPACE
from sandbox.types import MIB, ExecResult, Limits, SandboxSpec

Opener = Callable[[SandboxSpec], Sandbox]

TESTS_CPU_S, TESTS_WALL_S = 15, 20.0
CALL_CPU_S, CALL_WALL_S, CALLS_WALL_S = 2, 4.0, 8.0
"""Twice 28 s (a wall-clock verdict is made again) stay beneath a harness's deadline of 60 s."""
MAX_RESULT_CHARS = 1 << 20
START = (PYTHON, "-B", "-s", "-S", "-P")
"""No `site`, no user folder, no folder of the script; with `PYTHONHASHSEED`, which `-I` would ignore."""
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "LC_ALL": "C.UTF-8",
}
INI = "[pytest]\n"


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

    @classmethod
    def of(cls, task: Task) -> Answer:
        """Read `task.answer`.

        Raises:
            TaskError: a field is missing or of another type.
        """
        try:
            given = task.answer
            answer = cls(
                {str(path): str(text).encode() for path, text in given["trusted"].items()},
                tuple(map(str, given["fail_to_pass"])),
                tuple(map(str, given["pass_to_pass"])),
                {str(name): list(probes) for name, probes in given.get("probes", {}).items()},
                tuple(map(str, given.get("plugins", ()))),
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
    own, report = f".grade/{secrets.token_hex(8)}", secrets.token_hex(8)
    spec = _spec(
        {
            **placed({**files, **canaries.files}),
            KIT: kit(backend),
            f"{own}/run_tests.py": Path(run_tests.__file__).read_bytes(),
            f"{own}/pytest.ini": INI.encode(),
        },
        TESTS_WALL_S,
    )
    request = {
        "cpu_s": TESTS_CPU_S,
        "kit": f"{WORKSPACE}/{KIT}",
        "roots": import_paths(task),
        "arguments": [
            "-q", "-c", f"{WORKSPACE}/{own}/pytest.ini", "--rootdir", HOME, "--noconftest", "--tb=no",
            "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "--import-mode=importlib",
            f"--junitxml={WORKSPACE}/{own}/{report}.xml",
            *_plugins(answer), *tests, *canaries.files,
        ],
    }  # fmt: skip
    with opened(spec) as box:
        done = _exec(box, f"{own}/run_tests.py", request, TESTS_WALL_S)
        if done.reason != "ok":
            return TestRun(reason=f"stopped by the limit {done.reason!r}", timed_out=done.reason == "timeout")
        try:
            data = box.read(f"{own}/{report}.xml", max_bytes=junit.MAX_BYTES)
        except SandboxPathError:
            return TestRun(reason="pytest left no report")
    return _believed(answer, canaries, done.exit_code, junit.outcomes(data))


def _plugins(answer: Answer) -> list[str]:
    return [word for path in answer.plugins for word in ("-p", path.removesuffix(".py").replace("/", "."))]


def _believed(
    answer: Answer, canaries: _Canaries, exit_code: int | None, seen: Mapping[junit.Key, list[str]] | None
) -> TestRun:
    """Count what passed, if canaries and exit code fit: the failing canary alone makes pytest exit with 1."""
    if seen is None:
        return TestRun(reason="pytest's report is no JUnit file")

    def entries(node: str) -> list[str]:
        return seen.get(junit.key_of(node), [])

    passed = [
        sum(entries(node) == ["passed"] for node in nodes)
        for nodes in (answer.fail_to_pass, answer.pass_to_pass)
    ]
    reason = ""
    if entries(canaries.failing) != ["failed"] or entries(canaries.passing) != ["passed"]:
        reason = "the canaries were not reported as they are"
    elif exit_code != 1:
        reason = f"pytest ended with {exit_code}, with a failing test it ends with 1"
    return TestRun(fail_to_pass=passed[0], pass_to_pass=passed[1], sound=not reason, reason=reason)


# ------------------------------------------------------------------------------------ the second verdict


def _replay(task: Task, answer: Answer, files: Mapping[str, bytes], opened: Opener) -> Replay:
    own, nonce = f".replay/{secrets.token_hex(8)}", secrets.token_hex(16)
    spec = _spec(
        {
            **placed(files),
            f"{own}/replay_calls.py": Path(replay_calls.__file__).read_bytes(),
            f"{own}/library/envs/__init__.py": b"",
            f"{own}/library/envs/code/__init__.py": b"",
            f"{own}/library/envs/code/driver.py": Path(driver.__file__).read_bytes(),
        },
        CALLS_WALL_S,
    )
    probes = [(name, probe) for name, probes in answer.probes.items() for probe in probes]
    request = {
        "nonce": nonce,
        "library": f"{WORKSPACE}/{own}/library",
        "roots": import_paths(task),
        "cpu_s": CALL_CPU_S,
        "wall_s": CALL_WALL_S,
        "calls": [
            {"module": name.partition(":")[0], "function": name.partition(":")[2], **_call(probe)}
            for name, probe in probes
        ],
    }
    with opened(spec) as box:
        done = _exec(box, f"{own}/replay_calls.py", request, CALLS_WALL_S)
    total = len(probes)
    if done.reason != "ok":
        return Replay(
            passed=0, total=total, reason=f"stopped by {done.reason!r}", timed_out=done.reason == "timeout"
        )
    results = _results(done, nonce)
    if results is None or len(results) > total:
        return Replay(passed=0, total=total, reason="the answer is malformed")
    expected = [probe["expected"] for _, probe in probes]
    passed = sum(same(want, got) for want, got in zip(expected, results, strict=False))
    timed_out = any(isinstance(result, dict) and result.get("error") == "timeout" for result in results)
    return Replay(passed=passed, total=total, timed_out=timed_out)


def _call(probe: Mapping[str, Any]) -> dict[str, Any]:
    return {"args": probe["args"], "kwargs": probe["kwargs"]}


def _results(done: ExecResult, nonce: str) -> list[Any] | None:
    if done.exit_code != 0 or done.stdout.truncated_bytes:
        return None
    try:
        answer = json.loads(done.stdout.head + done.stdout.tail)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(answer, dict)
        or answer.get("nonce") != nonce
        or not isinstance(answer.get("results"), list)
    ):
        return None
    return list(answer["results"])


def same(expected: Mapping[str, Any], result: Any) -> bool:
    """Whether a replayed call did what the recorded one did; whatever is malformed did not."""
    output = result.get("output") if isinstance(result, dict) else None
    if not isinstance(output, str) or len(output) > MAX_RESULT_CHARS:
        return False
    try:
        got = json.loads(output)
        if "raised" in expected or not isinstance(got, dict) or got.keys() != expected.keys():
            return bool(got == expected)
        return all(
            agree(driver.decode(expected[key]), driver.decode(got[key]), Rule()) for key in ("value", "args")
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return False


# --------------------------------------------------------------------------------------------- sandboxes


def _spec(files: Mapping[str, bytes], seconds: float) -> SandboxSpec:
    limits = Limits(timeout_s=seconds, max_output_bytes=8 * MIB, kill_output_bytes=16 * MIB)
    return SandboxSpec(limits=limits, files=files, env=ENVIRONMENT)


def _exec(box: Sandbox, program: str, request: Mapping[str, Any], seconds: float) -> ExecResult:
    stdin = json.dumps(request).encode()
    done = box.exec([*START, f"{WORKSPACE}/{program}"], stdin=stdin, cwd=REPO, timeout_s=seconds)
    if done.reason == "sandbox_lost":
        raise SandboxLost("a grading sandbox was lost while a patch was judged")
    return done

"""Calling functions of a repository in a sandbox without pytest, and comparing what they did on the host."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.code import driver
from envs.code.comparison import Rule, agree
from envs.swe import replay_calls
from envs.swe.pytest_runs import Opener, execute, spec_of
from envs.swe.repository import placed
from sandbox.files import WORKSPACE

CALL_CPU_S, CALL_WALL_S, CALLS_WALL_S = 2, 4.0, 8.0
MAX_RESULT_CHARS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The raw results in order, as far as they came, or in `reason` why there are none."""

    results: tuple[Any, ...] = ()
    reason: str = ""
    timed_out: bool = False


def replay(
    files: Mapping[str, bytes],
    roots: Sequence[str],
    calls: Sequence[Mapping[str, Any]],
    opened: Opener,
    *,
    hash_seed: int = 0,
    seconds: float = CALLS_WALL_S,
) -> Replayed:
    """Make calls (`module`, `function`, `args`, `kwargs`), each in a process of its own.

    Raises:
        SandboxLost: the sandbox itself is gone.
    """
    own, nonce = f".replay/{secrets.token_hex(8)}", secrets.token_hex(16)
    harness = {
        "replay_calls.py": Path(replay_calls.__file__).read_bytes(),
        "library/envs/__init__.py": b"",
        "library/envs/code/__init__.py": b"",
        "library/envs/code/driver.py": Path(driver.__file__).read_bytes(),
    }
    request = {
        "nonce": nonce,
        "library": f"{WORKSPACE}/{own}/library",
        "roots": list(roots),
        "cpu_s": CALL_CPU_S,
        "wall_s": CALL_WALL_S,
        "calls": [{key: call[key] for key in ("module", "function", "args", "kwargs")} for call in calls],
    }
    placed_files = {**placed(files), **{f"{own}/{name}": data for name, data in harness.items()}}
    with opened(spec_of(placed_files, seconds, hash_seed)) as box:
        done = execute(box, f"{own}/replay_calls.py", request, seconds)
    if done.reason != "ok":
        return Replayed(reason=f"stopped by the limit {done.reason!r}", timed_out=done.reason == "timeout")
    if done.exit_code != 0 or done.stdout.truncated_bytes:
        return Replayed(reason=f"the replay ended with status {done.exit_code}")
    results = _results(done.stdout.head + done.stdout.tail, nonce)
    if results is None or len(results) > len(calls):
        return Replayed(reason="the answer is malformed")
    timed_out = any(isinstance(result, dict) and result.get("error") == "timeout" for result in results)
    return Replayed(results=tuple(results), timed_out=timed_out)


def _results(data: bytes, nonce: str) -> list[Any] | None:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or answer.get("nonce") != nonce:
        return None
    results = answer.get("results")
    return results if isinstance(results, list) else None


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

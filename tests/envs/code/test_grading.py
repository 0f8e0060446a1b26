"""Hand-written tasks judged in the real sandbox."""

from __future__ import annotations

import time
from typing import Any

import pytest

import sandbox
from agent_rl.rollout.config import RolloutConfig
from envs.code.driver import encode
from envs.code.env import CodeEnv
from envs.code.grading import TOTAL_S, Verdict, _why, grading_spec, judge
from envs.code.tools import TIMEOUT_S
from envs.errors import TaskError
from envs.types import Task


def task(tests: list[tuple[Any, Any]], form: str = "function", rule: str = "exact", **data: Any) -> Task:
    function = form == "function"
    return Task(
        id="t",
        env="code-v1",
        prompt=(),
        data={"form": form, "entry_point": "f" if function else "", "preamble": "", **data},
        answer={
            "tests": [
                {"input": [encode(given)], "expected": encode(value)}
                if function
                else {"input": given, "expected": value}
                for given, value in tests
            ],
            "rule": {"name": rule, "tolerance": None},
        },
    )


def verdict(backend: str, given: Task, source: str) -> Verdict:
    with sandbox.create(grading_spec(), backend=backend) as fresh:
        return judge(fresh, given, source)


DOUBLE = task([(1, 2), (3, 6), (0, 0)])


def test_right_answers_pass(backend: str) -> None:
    done = verdict(backend, DOUBLE, "def f(x):\n    return 2 * x\n")
    assert done == Verdict(passed=3, total=3)
    assert [(c.name, c.value, c.weight) for c in done.reward().components] == [
        ("tests", 1.0, 1.0),
        ("fraction", 1.0, 0.0),
    ]
    assert done.reward().scalar == 1.0


def test_one_wrong_result_is_a_fraction_and_no_reward(backend: str) -> None:
    done = verdict(backend, DOUBLE, "def f(x):\n    return x * x + x\n")
    assert done == Verdict(passed=2, total=3, reason="hidden input 2: wrong result")
    assert done.reward().scalar == 0.0


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(x):\n    return 2.0 * x\n", "hidden input 1: wrong result"),
        ("class I(int):\n    pass\ndef f(x):\n    return I(2 * x)\n", "hidden input 1: ended with status 1"),
        ("def g(x):\n    return 2 * x\n", "hidden input 1: ended with status 1"),
        ("import os\nos._exit(0)", "hidden input 1: wrong result"),
        ("def f(x):\n    return 'y' * (1 << 21)\n", "hidden input 1: output"),
        ("import os\ndef f(x):\n    os.kill(os.getppid(), 9)\n", "the driver ended with status -9"),
        (
            "def f(x):\n    a = [[]]\n    a[0].append(a)\n    return a\n",
            "hidden input 1: ended with status 1",
        ),
    ],
)
def test_wrong_in_many_ways(backend: str, source: str, reason: str) -> None:
    assert verdict(backend, DOUBLE, source) == Verdict(passed=0, total=3, reason=reason)


def test_truth_is_not_one(backend: str) -> None:
    given = task([(1, True), (0, False)])
    assert verdict(backend, given, "def f(x):\n    return x\n").passed == 0
    assert verdict(backend, given, "def f(x):\n    return x == 1\n").passed == 2


def test_memory_bomb_is_the_submissions_failure(backend: str) -> None:
    bomb = "def f(x):\n    a = []\n    while True:\n        a.append(bytearray(1 << 27))\n"
    assert verdict(backend, DOUBLE, bomb).reward().scalar == 0.0


def test_programs_compare_lines(backend: str) -> None:
    given = task([("1 2\n", "2\n1\n"), ("\n", "")], form="program", rule="text")
    source = "for word in input().split()[::-1]:\n    print(word, end='  \\n')\n"
    assert verdict(backend, given, source) == Verdict(passed=2, total=2)
    assert verdict(backend, given, "import sys\n" + source + "sys.exit(1)\n").passed == 0


def test_a_preamble_comes_first(backend: str) -> None:
    given = task([([2, 1], [1, 2])], preamble="from typing import List\n")
    assert verdict(backend, given, "def f(x: List[int]) -> List[int]:\n    return sorted(x)\n").passed == 1


def test_the_sandbox_holds_inputs_and_no_expected_output(backend: str) -> None:
    """Walks everything reachable from the candidate for a value that only the host has."""
    given = task([("question-4711", "expected-4711")])
    search = (
        "import gc, os, sys\n"
        "def f(x):\n"
        "    word = 'pected-' + x[-4:]\n"
        "    found = [t for t in gc.get_objects() if type(t) is dict and word in repr(t)]\n"
        "    for place in ('/workspace', '/tmp', '/proc/self', '/proc/1', '/proc/%d' % os.getppid()):\n"
        "        for folder, _, names in os.walk(place):\n"
        "            for name in names if not folder.endswith(('fd', 'map_files')) else ():\n"
        "                try:\n"
        "                    data = open(folder + '/' + name, 'rb').read(100000)\n"
        "                except OSError:\n"
        "                    continue\n"
        "                if ('ex' + word).encode() in data:\n"
        "                    found.append(name)\n"
        "    return 'ex' + word if found else 'nothing'\n"
    )
    assert verdict(backend, given, search) == Verdict(
        passed=0, total=1, reason="hidden input 1: wrong result"
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"tests": [], "rule": {"name": "exact"}},
        {"tests": [{"input": [1]}], "rule": {"name": "exact"}},
        {"tests": [{"input": [1], "expected": {"int": 1}}], "rule": {"name": "exact"}},
        {"tests": [{"input": [1], "expected": 1}]},
        None,
    ],
)
def test_a_broken_task_is_an_error_and_not_a_zero(backend: str, answer: Any) -> None:
    broken = Task(
        id="t", env="code-v1", prompt=(), data={"form": "function", "entry_point": "f"}, answer=answer
    )
    with pytest.raises(TaskError, match="task t cannot be graded"):
        verdict(backend, broken, "def f(x):\n    return 1\n")


COLLIDING = """
import json, os, sys
def f(x):
    frame = sys._getframe()
    while "out_fd" not in frame.f_locals:
        frame = frame.f_back
    numbers = [i * (2**61 - 1) for i in range(1, 40_000)]
    data = json.dumps({"set": numbers}).encode()
    while data:
        data = data[os.write(frame.f_locals["out_fd"], data):]
    os._exit(0)
"""


def test_a_set_of_colliding_integers_does_not_hold_the_host(backend: str) -> None:
    # Python hashes an integer modulo 2**61 - 1, so these 40,000 have the same hash: reading them costs their square.
    began = time.monotonic()
    assert verdict(backend, DOUBLE, COLLIDING) == Verdict(
        passed=0, total=3, reason="hidden input 1: wrong result"
    )
    assert time.monotonic() - began < 20


def test_a_long_right_result_passes(backend: str) -> None:
    long = task([(3, list(range(3000))), (4, {"a" * 5000: 1.5})])
    source = "def f(x):\n    return list(range(3000)) if x == 3 else {'a' * 5000: 1.5}\n"
    assert verdict(backend, long, source) == Verdict(passed=2, total=2)


def test_a_submission_fails_before_the_harness_gives_up(backend: str) -> None:
    # Else sleeping would turn a wrong answer into a fault, which is left out of the loss. A turn of tools comes first.
    tools = CodeEnv.turn_time_s + TIMEOUT_S
    assert tools + TOTAL_S + 5 <= RolloutConfig().env_timeout_s


def test_the_reason_of_a_forged_result_is_short_plain_text() -> None:
    for forged in ({"error": "\x1b[2J" * 1000}, {"exit": "\x1b[2J" * 1000, "output": ""}):
        reason = _why([forged], [False], 1)
        assert len(reason) < 100
        assert reason.isprintable()
    assert _why([{"error": "timeout"}], [False], 1) == "hidden input 1: timeout"
    assert _why([{"exit": -9, "output": ""}], [False], 1) == "hidden input 1: ended with status -9"

from __future__ import annotations

import pytest

from envs.swe.grading import Answer, _believed, _Canaries
from envs.swe.junit import key_of, outcomes
from envs.swe.pytest_runs import PytestResult
from sandbox.types import ExecResult, Output

REPORT = b"""<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one" /><testcase classname="tests.test_a.TestB" name="test_c[x.py::y]" />
<testcase classname="tests.test_a" name="test_two"><failure message="m">x</failure></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped /></testcase>
<testcase classname="tests.test_a" name="test_four" /><testcase classname="tests.test_a" name="test_four" />
<testcase classname="tests.test_0a" name="test_0a"><failure /></testcase>
<testcase classname="tests.test_1b" name="test_1b" />
</testsuite></testsuites>"""


def test_names_are_those_of_node_ids() -> None:
    seen = outcomes(REPORT)
    assert seen is not None
    assert seen[key_of("tests/test_a.py::test_one")] == ["passed"]
    assert seen[key_of("tests/test_a.py::TestB::test_c[x.py::y]")] == ["passed"]
    assert seen[key_of("tests/test_a.py::test_two")] == ["failed"]
    assert seen[key_of("tests/test_a.py::test_three")] == ["skipped"]
    assert seen[key_of("tests/test_a.py::test_four")] == ["passed", "passed"]


@pytest.mark.parametrize(
    "data", [b"", b"<a", b"\xff", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", b"<a/>" * 3]
)
def test_what_is_no_report_is_none(data: bytes) -> None:
    assert outcomes(data) is None


def _run(
    exit_code: int | None = 1, report: bytes = REPORT, **wanted: tuple[str, ...]
) -> tuple[int, int, bool]:
    answer = Answer({}, wanted.get("red", ("tests/test_a.py::test_one",)), wanted.get("green", ()), {})
    canaries = _Canaries({}, "tests/test_0a.py::test_0a", "tests/test_1b.py::test_1b")
    done = ExecResult(exit_code=exit_code, stdout=Output(), stderr=Output(), reason="ok")
    run = _believed(answer, canaries, PytestResult(done=done, seen=outcomes(report)))
    return run.fail_to_pass, run.pass_to_pass, run.sound


def test_each_test_counts_when_reported_once_as_passed() -> None:
    assert _run() == (1, 0, True)
    names = ("one", "two", "three", "four", "five")
    assert _run(green=tuple(f"tests/test_a.py::test_{name}" for name in names)) == (1, 1, True)


@pytest.mark.parametrize("exit_code", [0, 2, 5, None, -9])
def test_an_exit_code_that_does_not_fit_is_not_believed(exit_code: int | None) -> None:
    assert _run(exit_code) == (1, 0, False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'name="test_0a"><failure /></testcase>', b'name="test_0a" />'),
        (b'name="test_1b" />', b'name="test_1b"><failure /></testcase>'),
        (b'name="test_1b" />', b'name="test_1c" />'),
    ],
)
def test_a_canary_that_is_not_as_it_should_be_is_not_believed(old: bytes, new: bytes) -> None:
    assert old in REPORT
    assert _run(report=REPORT.replace(old, new))[2] is False

"""Bubblewrap against every case: as whoever runs the tests, and as an ordinary user."""

from __future__ import annotations

import os

import pytest

from sandbox import conformance
from sandbox.conformance import Subject, ordinary, try_case
from sandbox.errors import SandboxUnavailable


@pytest.mark.parametrize("name", conformance.CASES)
def test_case(subject: Subject, name: str) -> None:
    listed = conformance.allowed("bubblewrap")
    if subject.report.missing and os.geteuid() == 0:  # a container may withhold what root has elsewhere
        listed = {**dict.fromkeys(conformance.CASES, "this machine withholds it"), **listed}
    case = try_case(name, conformance.CASES[name], subject, listed)
    if case.status == "unenforceable":
        pytest.skip(case.reason)
    assert case.status == "pass", case.reason


_QUICK = ("programs-streams-and-exit-code", "abuse-03-memory-bomb", "posture-limits", "posture-host-user")


def test_an_ordinary_user_has_the_defaults() -> None:
    report = _as_user(*_QUICK)
    assert report.passed, report.text()
    assert [case.name for case in report.cases if case.status != "pass"] == ["posture-host-user"]


@pytest.mark.slow
def test_every_case_as_an_ordinary_user() -> None:
    report = _as_user()
    assert report.passed, report.text()
    assert len(report.cases) == len(conformance.CASES)


def _as_user(*cases: str) -> conformance.CheckReport:
    try:
        return ordinary.run("bubblewrap", cases=cases)
    except SandboxUnavailable as error:
        pytest.skip(str(error))

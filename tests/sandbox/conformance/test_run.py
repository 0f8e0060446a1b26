"""How a run judges, with cases made for it."""

from __future__ import annotations

import pytest

import sandbox
from sandbox import conformance
from sandbox.conformance import Subject, try_case
from sandbox.conformance.report import Broken, Case, CheckReport, Unenforceable
from sandbox.conformance.subject import equal, refused


def test_at_least_44_behaviours_and_all_abuse_cases() -> None:
    names = list(conformance.CASES)
    assert sum(not name.startswith(("abuse-", "posture-", "faults-")) for name in names) >= 44
    for number in range(1, 35):
        assert [name for name in names if name.startswith(f"abuse-{number:02}-")], number
    assert all(case.__doc__ for case in conformance.CASES.values())


def test_the_reviewed_list_names_cases() -> None:
    assert set(conformance.allowed("bubblewrap")) <= set(conformance.CASES)
    assert conformance.allowed("no-such-backend") == {}


def test_what_a_server_serves_decides_with_its_list() -> None:
    name = "posture-user-namespace"
    assert name not in conformance.allowed("remote:http://127.0.0.1:1", "remote:bubblewrap")
    assert name in conformance.allowed("remote:http://127.0.0.1:1", "remote:docker")


def test_a_case_ends_in_one_of_three_ways(subject: Subject) -> None:
    def broken(subject: Subject) -> None:
        raise Broken("it does not hold")

    def crash(subject: Subject) -> None:
        raise KeyError("x")

    def open_(subject: Subject) -> None:
        raise Unenforceable("no such kernel")

    def judge(case: conformance.CaseFunction, listed: dict[str, str]) -> tuple[str, str]:
        found = try_case("c", case, subject, listed)
        return found.status, found.reason

    assert judge(lambda subject: None, {}) == ("pass", "")
    assert judge(broken, {"c": "reviewed"}) == ("fail", "it does not hold")
    assert try_case("c", broken, subject, {}, {"c": "known"}).reason == "known"
    assert try_case("c", crash, subject, {}, {"c": "known"}).status == "fail"
    assert judge(crash, {"c": "reviewed"}) == ("fail", "KeyError: 'x'")
    assert judge(open_, {"c": "reviewed"}) == ("unenforceable", "reviewed")
    status, reason = judge(open_, {})
    assert status == "fail"
    assert "not on the reviewed list: no such kernel" in reason


def test_some_cases_of_a_backend() -> None:
    seen: list[str] = []
    names = ["streams-binary-stdin", "programs-streams-and-exit-code"]
    report = conformance.run("bubblewrap", cases=names, progress=seen.append)
    assert report.passed
    assert report.target == "sandbox:bubblewrap"
    assert seen == ["programs-streams-and-exit-code", "streams-binary-stdin"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'abuse-01-fork-bomb'"):
        conformance.run("bubblewrap", cases=["abuse-01-forkbomb"])
    with pytest.raises(ValueError, match="did you mean 'bubblewrap'"):
        conformance.run("bublewrap")


def test_a_backend_that_cannot_run_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    report = sandbox.CapabilityReport(backend="toy", enforced=frozenset(), missing={"exec": "no kernel"})
    toy = sandbox._Backend(lambda spec: sandbox.create(spec), lambda: report)
    monkeypatch.setitem(sandbox._BACKENDS, "toy", lambda where: toy)
    found = conformance.run("toy")
    assert not found.passed
    assert [case.reason for case in found.cases] == ["no kernel"]


def test_what_a_case_demands() -> None:
    with pytest.raises(Broken, match="sum: expected 3, found 2"):
        equal(1 + 1, 3, "sum")
    with pytest.raises(Broken, match="nothing was raised"), refused(ValueError, "nothing"):
        pass
    with pytest.raises(Broken, match="lacks 'word'"), refused(ValueError, "message", saying="word"):
        raise ValueError("other")


def test_reports_travel_as_json() -> None:
    cases = (Case(name="a", status="pass"), Case(name="b", status="fail", reason="x"))
    report = CheckReport(target="sandbox:x", cases=cases)
    assert CheckReport.from_json(report.to_json()) == report
    for odd in ({}, {"target": "x", "cases": [1]}, {"target": "x", "cases": [{}]}):
        with pytest.raises(ValueError, match="no report"):
            CheckReport.from_json(odd)


def test_only_optional_tiers_may_break_cases() -> None:
    for backend in ("bubblewrap", "docker", "remote"):
        assert conformance.deviations(backend) == {}
    assert set(conformance.deviations("gvisor")) | set(conformance.allowed("gvisor")) <= set(
        conformance.CASES
    )

from __future__ import annotations

import pytest

from sandbox.conformance import matrix as page
from sandbox.conformance.report import Case, CheckReport
from sandbox.errors import SandboxUnavailable


def _report(target: str, **statuses: str) -> CheckReport:
    cases = [
        Case(name=name, status=status, reason="" if status == "pass" else f"why {name}")  # type: ignore[arg-type]
        for name, status in statuses.items()
    ]
    return CheckReport(target=target, cases=tuple(cases))


def test_a_row_a_case_and_a_column_a_report() -> None:
    reports = [
        _report("one", a="pass", b="unenforceable", c="fail"),
        _report("two", a="pass", b="unenforceable", d="pass"),
    ]
    lines = page.matrix(reports, {"three": "no daemon"}).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert table == [
        "| case | one | two |",
        "| --- | --- | --- |",
        "| `a` | yes | yes |",
        "| `b` | (1) | (1) |",
        "| `c` | **no** |  |",
        "| `d` |  | yes |",
        "| **passed of all** | 1 of 3 | 2 of 3 |",
    ]
    assert lines[-3:] == ["1. why b", "* one, `c`: why c", "* three was not tried: no daemon"]


def test_a_column_that_cannot_run_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(progress: page.Progress) -> CheckReport:
        raise SandboxUnavailable("no daemon")

    def present(progress: page.Progress) -> CheckReport:
        progress("a")
        return _report("sandbox:x", a="pass")

    monkeypatch.setattr(page, "COLUMNS", {"x": present, "y": absent})
    seen: list[tuple[str, str]] = []
    reports, missing = page.columns(lambda column, case: seen.append((column, case)))
    assert [report.target for report in reports] == ["x"]
    assert missing == {"y": "no daemon"}
    assert seen == [("x", "a")]

"""The suite itself: every case on bubblewrap, what a broken backend gets, and the list of reviewed cells."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from sandbox import conformance
from sandbox.conformance import matrix
from sandbox.conformance.report import Broken, Case, CheckReport, Unenforceable
from sandbox.conformance.subject import Subject
from sandbox.machine import machine

CELLS = Path(conformance.__file__).with_name("unenforceable.toml")


@pytest.mark.parametrize("name", conformance.CASES)
def test_bubblewrap(name: str) -> None:
    report = conformance.run("bubblewrap", cases=[name])
    assert report.passed, report.text()


def test_bubblewrap_as_an_ordinary_user() -> None:
    command = matrix.columns().get("bubblewrap (user)")
    if command is None or os.geteuid() != 0:
        pytest.skip("the other tests run as an ordinary user already")
    report = matrix.measure(command)
    assert report.passed, report.text()
    passed = sum(case.status == "pass" for case in report.cases)
    assert passed >= 110, report.text()


@pytest.mark.parametrize("name", [n for n in conformance.CASES if n.startswith("workspace-")])
def test_forks_by_copy_keep_the_same_promises(name: str) -> None:
    ground = machine()
    before, ground.overlay = ground.overlay, False
    try:
        report = conformance.run("bubblewrap", cases=[name])
    finally:
        ground.overlay = before
    assert report.passed, report.text()


def test_the_suite_is_as_large_as_promised() -> None:
    numbers = {name.split("-")[1] for name in conformance.CASES if name.startswith("abuse-")}
    assert numbers == {f"{n:02}" for n in range(1, 35)}
    behaviours = [n for n in conformance.CASES if n.startswith(("exec-", "workspace-", "shell-"))]
    assert len(behaviours) >= 44


def test_reviewed_cells_name_cases_and_reasons() -> None:
    table = tomllib.loads(CELLS.read_text())
    for backend in table.values():
        assert set(backend) <= {"any", "root", "user"}
        for cells in backend.values():
            assert set(cells) <= set(conformance.CASES)
            assert all(len(reason) > 10 for reason in cells.values())


def test_what_a_case_says_becomes_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(subject: Subject) -> None:
        raise Broken("2 is not 3")

    def crash(subject: Subject) -> None:
        raise OSError("lost")

    def not_here(subject: Subject) -> None:
        raise Unenforceable("no kernel")

    for name, function in (("x", broken), ("y", crash), ("z", not_here), ("w", not_here)):
        monkeypatch.setitem(conformance.CASES, name, function)
    monkeypatch.setattr(conformance, "reviewed", lambda backend, who: {"w": "reviewed"})
    report = conformance.run("bubblewrap", cases=["x", "y", "z", "w"])
    assert [(c.name, c.status) for c in report.cases] == [
        ("x", "fail"),
        ("y", "fail"),
        ("z", "fail"),
        ("w", "unenforceable"),
    ]
    assert "not among the reviewed ones" in report.cases[2].reason
    assert not report.passed


def test_an_unknown_case_is_refused() -> None:
    with pytest.raises(ValueError, match="no case is called 'exec-nothing'"):
        conformance.run("bubblewrap", cases=["exec-nothing"])


def test_the_page_shows_every_cell_and_every_reason() -> None:
    one = CheckReport(
        target="a", cases=(Case(name="c", status="pass"), Case(name="d", status="fail", reason="why"))
    )
    two = CheckReport(target="b", cases=(Case(name="c", status="unenforceable", reason="no root"),))
    text = matrix.page({"one": one, "two": two})
    assert "| c | yes | – |\n| d | **no** |  |\n" in text
    assert "## one\n\n* d: why\n" in text
    assert "## two\n\n* c: no root\n" in text


def test_the_command_line_runs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from agent_rl.cli import main

    few = {name: conformance.CASES[name] for name in ("exec-streams-and-exit-code", "exec-stdin-binary")}
    monkeypatch.setattr(conformance, "CASES", few)
    monkeypatch.setattr("sys.argv", ["agent-rl", "check", "sandbox:bubblewrap"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code or 0) == 0
    assert "sandbox:bubblewrap passed: 2 cases, 0 failed" in capsys.readouterr().out

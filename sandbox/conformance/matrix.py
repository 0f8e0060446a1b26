"""The table of backend by case, as a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import sandbox
from sandbox import conformance
from sandbox.conformance import ordinary
from sandbox.conformance.report import CheckReport
from sandbox.errors import SandboxUnavailable

Progress = Callable[[str], object]
Column = Callable[[Progress], CheckReport]

COLUMNS: Mapping[str, Column] = {
    "bubblewrap": lambda progress: conformance.run("bubblewrap", progress=progress),
    "bubblewrap, ordinary user": lambda progress: ordinary.run("bubblewrap", progress=progress),
    "docker": lambda progress: conformance.run("docker", progress=progress),
    "gvisor": lambda progress: optional("gvisor", progress),
    "remote over bubblewrap": lambda progress: served("bubblewrap", progress),
    "remote over docker": lambda progress: served("docker", progress),
}
"""What the page compares: one line a column. A column that cannot run here raises `SandboxUnavailable`."""

_LEASE_S = 8.0  # the case of the killed harness waits for it to run out
_MARKS = {"pass": "yes", "fail": "**no**"}
_HEAD = """# What each sandbox backend enforces

Made by `agent-rl check sandbox:matrix --out docs/sandbox-matrix.md`; each row is a case of `sandbox.conformance`,
tried on one machine. A number stands for "not enforceable here", with the reason below the table.
"""


def optional(backend: str, progress: Progress) -> CheckReport:
    """Try a backend of an optional tier where it can run.

    Raises:
        SandboxUnavailable: it cannot.
    """
    if why := sandbox.capabilities(backend).missing.get("exec"):
        raise SandboxUnavailable(why)
    return conformance.run(backend, progress=progress)


def served(backend: str, progress: Progress) -> CheckReport:
    """Try a backend through a server of this process."""
    from sandbox.remote import connection
    from sandbox.remote.serving import running
    from sandbox.remote.settings import Settings

    with running(Settings(port=0, backend=backend, lease_s=_LEASE_S)) as address:
        try:
            return conformance.run(f"remote:{address}", shares_host=True, progress=progress)
        finally:
            connection.disconnect()


def columns(progress: Callable[[str, str], object]) -> tuple[list[CheckReport], dict[str, str]]:
    """Try every column; the reports, and why the others cannot run here. `progress` takes column and case."""
    reports: list[CheckReport] = []
    absent: dict[str, str] = {}
    for name, column in COLUMNS.items():
        try:
            report = column(lambda case, name=name: progress(name, case))  # type: ignore[misc]
        except SandboxUnavailable as error:
            absent[name] = str(error)
            continue
        reports.append(dataclasses.replace(report, target=name))
    return reports, absent


def matrix(reports: Sequence[CheckReport], absent: Mapping[str, str] | None = None) -> str:
    """The reports as a Markdown page: a row a case, a column a report; `absent` are columns that could not run."""
    statuses = [{case.name: case for case in report.cases} for report in reports]
    names = dict.fromkeys(case.name for report in reports for case in report.cases)
    reasons: dict[str, int] = {}
    lines = [
        _HEAD,
        _row("case", *(report.target for report in reports)),
        _row("---", *["---"] * len(reports)),
    ]
    for name in names:
        cells = []
        for found in statuses:
            case = found.get(name)
            if case is None:
                cells.append("")
            elif case.status == "unenforceable":
                cells.append(f"({reasons.setdefault(case.reason, len(reasons) + 1)})")
            else:
                cells.append(_MARKS[case.status])
        lines.append(_row(f"`{name}`", *cells))
    lines.append(_row("**passed of all**", *(_count(report) for report in reports)))
    lines += ["", *(f"{number}. {reason}" for reason, number in reasons.items())]
    for report in reports:
        for case in report.cases:
            if case.status == "fail":
                lines.append(f"* {report.target}, `{case.name}`: {case.reason}")
    lines += [f"* {name} was not tried: {why}" for name, why in (absent or {}).items()]
    return "\n".join(lines).rstrip() + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _count(report: CheckReport) -> str:
    return f"{sum(case.status == 'pass' for case in report.cases)} of {len(report.cases)}"

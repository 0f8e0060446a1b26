"""What every sandbox backend must do, and what none may let happen: one small function a case.

report = run("bubblewrap")
print(report.text())
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

from sandbox.conformance import (
    abuse_confinement,
    abuse_resources,
    posture,
    programs,
    shells,
    whose_fault,
    workspaces,
)
from sandbox.conformance.report import Broken, Case, CheckReport, Status, Unenforceable
from sandbox.conformance.subject import Subject

__all__ = ["CASES", "Case", "CheckReport", "run", "who"]

CaseFunction = Callable[[Subject], None]


def _named(prefix: str, functions: Sequence[CaseFunction]) -> dict[str, CaseFunction]:
    return {prefix + function.__name__.replace("_", "-"): function for function in functions}


CASES: dict[str, CaseFunction] = {
    **_named("exec-", programs.CASES),
    **_named("workspace-", workspaces.CASES),
    **_named("shell-", shells.CASES),
    **_named("", posture.CASES),
    **_named("", abuse_resources.CASES),
    **_named("", abuse_confinement.CASES),
    **_named("", whose_fault.CASES),
}
"""Every case by name, in the order in which they are tried."""
_ESSENTIAL = frozenset({"exec-streams-and-exit-code"})


def who() -> str:
    """`root` or `user`: what can be enforced depends on who starts the harness."""
    return "root" if os.geteuid() == 0 else "user"


def reviewed(backend: str, as_who: str) -> dict[str, str]:
    """The cells that may be unenforceable, by case, with the reason: `unenforceable.toml`, which people review."""
    table = tomllib.loads(Path(__file__).with_name("unenforceable.toml").read_text(encoding="utf-8"))
    name = backend.partition(":")[0]
    cells: dict[str, str] = {**table.get(name, {}).get("any", {}), **table.get(name, {}).get(as_who, {})}
    return cells


def run(
    backend: str = "bubblewrap",
    *,
    cases: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> CheckReport:
    """Try every case on a backend, each in sandboxes of its own.

    Args:
        backend: as for `sandbox.create`.
        cases: names of the only cases to try.
        progress: told the name of each case before it is tried.

    Raises:
        ValueError: no such backend, or no such case.
    """
    unknown = sorted(set(cases or ()) - set(CASES))
    if unknown:
        raise ValueError(f"no case is called {unknown[0]!r}; the cases are {', '.join(CASES)}")
    subject, allowed = Subject(backend), reviewed(backend, who())
    found = []
    for name, function in CASES.items():
        if cases is None or name in cases:
            progress(name)
            found.append(_try(name, function, subject, allowed))
    return CheckReport(
        target=f"sandbox:{backend}",
        cases=tuple(found),
        essential=_ESSENTIAL if cases is None else frozenset(),
    )


def _try(name: str, function: CaseFunction, subject: Subject, allowed: dict[str, str]) -> Case:
    if "exec" in subject.report.missing:
        return Case(name=name, status="unenforceable", reason=subject.report.missing["exec"])
    status: Status = "pass"
    reason = ""
    try:
        function(subject)
    except Broken as broken:
        status, reason = "fail", str(broken)
    except Unenforceable as unenforceable:
        reason = str(unenforceable)
        status = "unenforceable" if name in allowed else "fail"
        if status == "fail":
            reason = f"{reason}; this cell is not among the reviewed ones in unenforceable.toml"
    except Exception as error:  # noqa: BLE001 - the boundary to the backend under test: whatever it raises is a finding
        status, reason = "fail", f"{type(error).__name__}: {error}"
    return Case(name=name, status=status, reason=reason)

"""Does a sandbox backend keep the contract, and does it hold against abuse?

`run("bubblewrap")` tries every case; each is one small function that returns, or raises `Broken` or `Unenforceable`.
Cases use only the `Sandbox` seam, so that every backend runs the same ones. What cannot be enforced somewhere is on
a reviewed list (`unenforceable.toml`); whatever else cannot be tried has failed.
"""

from __future__ import annotations

import difflib
import inspect
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType

from sandbox.conformance import (
    channel,
    confinement,
    faults,
    lifecycle,
    lifetimes,
    posture,
    programs,
    resources,
    shells,
    snapshots,
    streams,
    workspace,
)
from sandbox.conformance.report import Broken, Case, CheckReport, Unenforceable
from sandbox.conformance.subject import Subject, bash, equal, succeeds

__all__ = ["CASES", "CaseFunction", "Subject", "allowed", "deviations", "run", "try_case"]

CaseFunction = Callable[[Subject], None]

_MODULES = (
    *(programs, streams, workspace, lifecycle, shells, snapshots),  # behaviours
    *(faults, resources, lifetimes, confinement, channel, posture),  # abuse
)
_ESSENTIAL = frozenset({"programs-streams-and-exit-code"})


def _cases(module: ModuleType) -> dict[str, CaseFunction]:
    """The public functions of a module; abuse and posture cases carry their numbers and kind in their own names."""
    found: dict[str, CaseFunction] = {}
    kind = module.__name__.rpartition(".")[2]
    for name, function in vars(module).items():
        if inspect.isfunction(function) and function.__module__ == module.__name__ and name[0] != "_":
            shown = name.replace("_", "-")
            found[shown if name.startswith(("abuse_", "posture_")) else f"{kind}-{shown}"] = function
    return found


CASES: Mapping[str, CaseFunction] = {
    name: case for module in _MODULES for name, case in _cases(module).items()
}
"""Every case by its name, in the order of a run."""


def run(
    backend: str,
    *,
    cases: Collection[str] | None = None,
    base: str = "",
    shares_host: bool | None = None,
    progress: Callable[[str], object] = lambda name: None,
) -> CheckReport:
    """Try a backend.

    Args:
        backend: As for `sandbox.create`.
        cases: Names of those to try; None for all.
        base: Root file system to ask for, where the backend has more than its own.
        shares_host: Whether programs run on this machine; by default they do unless the backend has an address.
        progress: Called with the name of each case before it runs.

    Raises:
        ValueError: no such backend or case.
    """
    names = _chosen(cases)
    local = ":" not in backend if shares_host is None else shares_host
    target = f"sandbox:{backend}"
    try:
        subject = Subject.of(backend, base=base, shares_host=local)
    except Broken as error:
        broken = Case(name=min(_ESSENTIAL), status="fail", reason=str(error))
        return CheckReport(target=target, cases=(broken,), essential=_ESSENTIAL)
    served = subject.report.backend
    listed, deviating = allowed(backend, served), deviations(backend, served)
    found = []
    for name in names:
        progress(name)
        found.append(try_case(name, CASES[name], subject, listed, deviating))
    return CheckReport(target=target, cases=tuple(found), essential=_ESSENTIAL & set(names))


def try_case(
    name: str,
    case: CaseFunction,
    subject: Subject,
    listed: Mapping[str, str],
    deviating: Mapping[str, str] = MappingProxyType({}),
) -> Case:
    """One case.

    Args:
        name: What it is called.
        case: What it does.
        subject: On what.
        listed: Cases that may be unenforceable, with the reviewed reason.
        deviating: Cases that may be broken, with the reviewed reason.
    """
    try:
        case(subject)
        if name.startswith("abuse-"):
            _next_task_is_clean(subject)
    except Unenforceable as error:
        if name in listed:
            return Case(name=name, status="unenforceable", reason=listed[name])
        return Case(name=name, status="fail", reason=f"unenforceable, but not on the reviewed list: {error}")
    except Exception as error:  # noqa: BLE001 - a backend runs inside; whatever it raises is a finding
        if isinstance(error, Broken) and name in deviating:
            return Case(name=name, status="unenforceable", reason=deviating[name])
        shown = str(error) if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
        return Case(name=name, status="fail", reason=" ".join(shown.split())[:600])
    return Case(name=name, status="pass")


def allowed(backend: str, reported: str = "") -> Mapping[str, str]:
    """Cases that a backend need not enforce for this process's user, with the reviewed reason.

    Args:
        backend: As for `sandbox.create`.
        reported: What its report calls it: for a server `remote:` and the backend that it serves.
    """
    return _listed(backend, reported, ("any", "root" if os.geteuid() == 0 else "user"))


def deviations(backend: str, reported: str = "") -> Mapping[str, str]:
    """Cases that a backend of an optional tier is known to break, with the reviewed reason."""
    return _listed(backend, reported, ("deviates",))


def _listed(backend: str, reported: str, kinds: tuple[str, ...]) -> Mapping[str, str]:
    lists = tomllib.loads(Path(__file__).with_name("unenforceable.toml").read_text())
    tables = [lists.get(name, {}) for name in dict.fromkeys((backend.partition(":")[0], reported))]
    return {name: why for table in tables for kind in kinds for name, why in table.get(kind, {}).items()}


def _next_task_is_clean(subject: Subject) -> None:
    with subject.create() as fresh:
        shown = succeeds(bash(fresh, "find . /tmp /dev/shm -mindepth 1"), "find").stdout.text
        equal(shown, "", "files of a fresh sandbox after the case")


def _chosen(cases: Collection[str] | None) -> list[str]:
    for name in cases or ():
        if name not in CASES:
            near = difflib.get_close_matches(name, CASES, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"no case is called {name!r}{hint} (see sandbox/conformance/README.md)")
    return [name for name in CASES if cases is None or name in cases]

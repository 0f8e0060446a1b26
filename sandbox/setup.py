"""Making bubblewrap sandboxes: limits checked, the machine probed once, requirements refused if they cannot be met."""

from __future__ import annotations

import dataclasses
import difflib
import threading

from sandbox.bubblewrap import BubblewrapSandbox
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.machine import Machine, machine
from sandbox.network import Policy
from sandbox.types import CapabilityReport, Limits, SandboxSpec

BACKEND = "bubblewrap"
ALWAYS = frozenset(
    {
        "namespaces",
        "no_network",
        "allow_list",
        "no_capabilities",
        "no_new_privileges",
        "read_only_root",
        "clean_environment",
        "whole_tree_kill",
        "deadline",
        "output_limit",
        "open_files",
        "file_size",
        "tmp_size",
        "snapshot",
    }
)
"""Enforced wherever the backend runs at all."""
SOMETIMES = frozenset(
    {
        "separate_uid",
        "memory_total",
        "memory_per_process",
        "processes",
        "workspace_size",
        "seccomp",
        "overlay",
    }
)
"""Enforced depending on the machine."""
_HINT = (
    "user namespaces may be off (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "
    "kernel.apparmor_restrict_unprivileged_userns) or a container forbids them"
)

_guard = threading.Lock()


def create(spec: SandboxSpec) -> BubblewrapSandbox:
    """See `sandbox.create`."""
    check_limits(spec.limits)
    check_strict(spec, BACKEND)
    Policy.parse(spec.allow)
    if spec.base:
        raise SandboxUnavailable(
            f"bubblewrap shows this machine's /usr and knows no base {spec.base!r}; leave it out"
        )
    ground = machine()
    report = _report(ground)
    if "exec" in report.missing:
        raise SandboxUnavailable(report.missing["exec"])
    check_required(spec.require, report)
    return BubblewrapSandbox(ground, spec, report).fill()


def capabilities() -> CapabilityReport:
    """See `sandbox.capabilities`."""
    try:
        return _report(machine())
    except SandboxUnavailable as error:
        return CapabilityReport(backend=BACKEND, enforced=frozenset(), missing={"exec": str(error)})


def _report(ground: Machine) -> CapabilityReport:
    with _guard:
        if ground.report is None:
            ground.report = _probe(ground)
        return ground.report


def _probe(ground: Machine) -> CapabilityReport:
    """Run a program, and another over a snapshot, to see what works."""
    blank = CapabilityReport(backend=BACKEND, enforced=frozenset())
    spec = SandboxSpec(limits=Limits(timeout_s=30.0))
    missing = dict(ground.reasons)
    try:
        with BubblewrapSandbox(ground, spec, blank) as sandbox:
            sandbox.exec(["/bin/true"])
            sandbox.write("probe", b"")
            sandbox.snapshot().release()
            try:
                sandbox.exec(["/bin/true"])
            except SandboxError as error:
                ground.overlay = False
                missing["overlay"] = (
                    f"forks copy the files, because overlayfs does not work in a sandbox: {error}"
                )
    except (SandboxError, OSError) as error:
        reason = f"bubblewrap cannot run here: {error}; {_HINT}"
        return CapabilityReport(backend=BACKEND, enforced=frozenset(), missing={"exec": reason})
    groups = ground.cgroups.missing
    if "memory" in groups:
        missing["memory_total"] = f"{groups['memory']}; each process's address space is bounded instead"
    if "pids" in groups:
        missing["processes"] = f"{groups['pids']}; RLIMIT_NPROC bounds all processes of the user instead"
    if not ground.bounded_layers:
        missing["workspace_size"] = (
            "a tmpfs for each workspace needs CAP_SYS_ADMIN; only single files are bounded"
        )
    return CapabilityReport(backend=BACKEND, enforced=(ALWAYS | SOMETIMES) - missing.keys(), missing=missing)


def check_required(required: frozenset[str], report: CapabilityReport) -> None:
    """Refuse what the machine cannot enforce.

    Raises:
        SandboxUnavailable: with the reason, or with the nearest name if there is no such capability.
    """
    for name in sorted(required - report.enforced):
        if name in report.missing:
            raise SandboxUnavailable(
                f"{name!r} is required but cannot be enforced here: {report.missing[name]}"
            )
        near = difflib.get_close_matches(name, ALWAYS | SOMETIMES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SandboxUnavailable(
            f"{name!r} is required, but no such capability exists{hint} Known: {', '.join(sorted(ALWAYS | SOMETIMES))}"
        )


def check_strict(spec: SandboxSpec, backend: str) -> None:
    """Refuse a profile that a backend does not have.

    Raises:
        SandboxUnavailable: it is not `strict`.
    """
    if spec.profile != "strict":
        raise SandboxUnavailable(
            f"{backend} has no profile {spec.profile!r}; use docker, with an engine that maps the ids of containers"
        )


def check_limits(limits: Limits) -> None:
    """Refuse what means no limit to the kernel.

    Raises:
        ValueError: a limit is not positive.
    """
    for item in dataclasses.fields(limits):
        value = getattr(limits, item.name)
        if value is not None and not value > 0:  # 0 would mean unlimited to the kernel
            raise ValueError(f"limits.{item.name} must be positive, not {value!r}")

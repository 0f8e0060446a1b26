"""Making gVisor sandboxes: the machine probed once, requirements refused if they cannot be met."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace

from sandbox import seccomp
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.gvisor_sandbox import GvisorSandbox
from sandbox.machine import Machine, machine
from sandbox.setup import ALWAYS, SOMETIMES, check_limits, check_required, check_strict
from sandbox.types import CapabilityReport, Limits, SandboxSpec

BACKEND = "gvisor"
_PATH = "/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin"
_MISSING = {
    "allow_list": "programs have no network at all; use the bubblewrap backend for an allow-list",
    "memory_per_process": "the memory of all processes together is bounded instead",
}
_NO_STAT = (
    "refuses the flag AT_NO_AUTOMOUNT, as releases of 2022 do, so that `stat`, `ls -l` and `ls FOLDER` fail; "
    "other programs work: install a later runsc"
)
ENFORCED = (ALWAYS | SOMETIMES | {"own_kernel"}) - _MISSING.keys()
"""What holds wherever the backend runs: it does not run where one of these does not."""
_guard = threading.Lock()
_reports: dict[int, tuple[str, CapabilityReport]] = {}


def create(spec: SandboxSpec) -> GvisorSandbox:
    """See `sandbox.create`."""
    check_limits(spec.limits)
    check_strict(spec, BACKEND)
    if spec.allow:
        raise SandboxUnavailable(f"allow={spec.allow!r} cannot be met: {_MISSING['allow_list']}")
    if spec.base:
        raise SandboxUnavailable(
            f"gvisor shows this machine's /usr and knows no base {spec.base!r}; leave it out"
        )
    runsc, report = _probed()
    check_required(spec.require, report)
    return GvisorSandbox(machine(), runsc, spec, report).fill()


def capabilities() -> CapabilityReport:
    """See `sandbox.capabilities`."""
    try:
        return _probed()[1]
    except SandboxUnavailable as error:
        return CapabilityReport(backend=BACKEND, enforced=frozenset(), missing={"exec": str(error)})


def _probed() -> tuple[str, CapabilityReport]:
    with _guard:
        if os.getpid() not in _reports:
            _reports[os.getpid()] = _probe(machine())
        return _reports[os.getpid()]


def _probe(ground: Machine) -> tuple[str, CapabilityReport]:
    """Refuse where the promises do not hold, then run a program over a snapshot to see that they do.

    Raises:
        SandboxUnavailable: something is missing.
    """
    runsc = shutil.which("runsc", path=_PATH)
    if runsc is None:
        raise SandboxUnavailable(f"runsc is not in {_PATH}; install it (Debian: apt-get install runsc)")
    lacking = {
        "root, for user ids and workspaces of bounded size": ground.uids is None or not ground.bounded_layers,
        "the memory and pids control groups": bool(ground.cgroups.missing),
        "x86_64 or aarch64": not seccomp.supported(),
    }
    if needs := [need for need, absent in lacking.items() if absent]:
        raise SandboxUnavailable(f"gvisor sandboxes need {'; '.join(needs)}")
    report = CapabilityReport(backend=BACKEND, enforced=ENFORCED, missing=_MISSING)
    spec = SandboxSpec(limits=Limits(timeout_s=30.0))
    try:
        with GvisorSandbox(ground, runsc, spec, report) as sandbox:
            sandbox.write("probe", b"")
            sandbox.snapshot().release()
            result = sandbox.exec(["/bin/cat", "probe"])
            lists = sandbox.exec(["/usr/bin/stat", "probe"]).ok
    except (SandboxError, OSError) as error:
        raise SandboxUnavailable(f"gvisor cannot run here: {error}") from error
    if not result.ok:
        raise SandboxUnavailable(f"a first program under {runsc} failed: {result.stderr.text[:300]}")
    if lists:
        return runsc, replace(report, enforced=report.enforced | {"coreutils"})
    return runsc, replace(report, missing={**_MISSING, "coreutils": f"{runsc} {_NO_STAT}"})

"""Making Docker sandboxes: the daemon and this machine probed once, requirements refused if they cannot be met."""

from __future__ import annotations

import os
import threading

from sandbox import docker_leases, docker_mounts, seccomp
from sandbox.docker_daemon import Daemon, daemon
from sandbox.docker_image import ImageSandbox, is_mapped, mapped_root
from sandbox.docker_sandbox import DockerSandbox
from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.machine import Machine, machine
from sandbox.network import Policy
from sandbox.setup import ALWAYS, SOMETIMES, check_limits, check_required
from sandbox.types import CapabilityReport, Limits, SandboxSpec

BACKEND = "docker"
_MISSING = {
    "memory_per_process": "the memory of all processes together is bounded instead",
    "user_namespace": "Docker's containers share the host's user namespace; programs run as a host user of their own",
}
ENFORCED = (ALWAYS | SOMETIMES | {"dies_with_harness"}) - _MISSING.keys()
"""What holds wherever the backend runs: it does not run where one of these does not."""
_MISSING_FOR_IMAGES = {
    "memory_per_process": _MISSING["memory_per_process"],
    "read_only_root": "the image's system may be changed; what is written is bounded",
    "separate_uid": "all sandboxes of an engine share the host users that it maps",
}
ENFORCED_FOR_IMAGES = (ENFORCED | {"user_namespace", "system_size"}) - _MISSING_FOR_IMAGES.keys()
"""What holds with the profile `image`."""
_guard = threading.Lock()
_reports: dict[tuple[str, int], CapabilityReport] = {}


def create(spec: SandboxSpec, address: str) -> DockerSandbox:
    """See `sandbox.create`."""
    check_limits(spec.limits)
    Policy.parse(spec.allow)
    if spec.profile == "image":
        return _create_image(spec, daemon(address), machine())
    report = capabilities(address)
    if "exec" in report.missing:
        raise SandboxUnavailable(report.missing["exec"])
    check_required(spec.require, report)
    return DockerSandbox(daemon(address), machine(), spec, report).fill()


def _create_image(spec: SandboxSpec, engine: Daemon, ground: Machine) -> ImageSandbox:
    mapped_root(engine)
    if not spec.base:
        raise SandboxUnavailable(
            "profile='image' needs an image: name one by base=, such as images.build makes"
        )
    if needs := [need for need, absent in _lacking(engine, ground).items() if absent]:
        raise SandboxUnavailable(f"docker sandboxes need {'; '.join(needs)}")
    report = CapabilityReport(backend=BACKEND, enforced=ENFORCED_FOR_IMAGES, missing=_MISSING_FOR_IMAGES)
    check_required(spec.require, report)
    _note(engine, ground)
    return ImageSandbox(engine, ground, spec, report).fill()


def _note(engine: Daemon, ground: Machine) -> None:
    """Write down where the reaper must look for what this process leaves."""
    ground.ledger.record("engine", engine.url)
    ground.ledger.sync()


def capabilities(address: str) -> CapabilityReport:
    """See `sandbox.capabilities`."""
    with _guard:
        key = (address, os.getpid())
        if key not in _reports:
            try:
                _reports[key] = _probe(daemon(address), machine())
            except (SandboxError, OSError) as error:  # not kept: the daemon may come up later
                return CapabilityReport(backend=BACKEND, enforced=frozenset(), missing={"exec": str(error)})
        return _reports[key]


def _probe(engine: Daemon, ground: Machine) -> CapabilityReport:
    """Refuse where the promises do not hold, then run a program over a snapshot to see that they do.

    Raises:
        SandboxUnavailable: something is missing.
    """
    lacking = {
        **_lacking(engine, ground),
        "an engine without user-namespace remapping (this one has only the profile 'image')": is_mapped(
            engine
        ),
    }
    if needs := [need for need, absent in lacking.items() if absent]:
        raise SandboxUnavailable(f"docker sandboxes need {'; '.join(needs)}")
    _note(engine, ground)
    docker_leases.clean(engine.api)
    report = CapabilityReport(backend=BACKEND, enforced=ENFORCED, missing=_MISSING)
    spec = SandboxSpec(limits=Limits(timeout_s=30.0))
    with DockerSandbox(engine, ground, spec, report) as sandbox:
        sandbox.write("probe", b"")
        sandbox.snapshot().release()
        result = sandbox.exec(["/bin/cat", "probe"])
        if not result.ok:
            raise SandboxUnavailable(f"a first program in a container failed: {result.stderr.text[:300]}")
    return report


def _lacking(engine: Daemon, ground: Machine) -> dict[str, bool]:
    """What every profile needs, and whether it is absent."""
    return {
        "root, for user ids and workspaces of bounded size": ground.uids is None or not ground.bounded_layers,
        "the memory and pids control groups": bool(ground.cgroups.missing),
        "x86_64 or aarch64": not (seccomp.supported() and docker_mounts.supported()),
        "an engine whose containers have seccomp": not any(
            "seccomp" in option for option in engine.info.get("SecurityOptions") or ()
        ),
    }

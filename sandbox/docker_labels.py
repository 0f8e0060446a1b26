"""What a container says about the process that made it, and in which version of its interface the daemon is asked."""

from __future__ import annotations

import os
import time

from sandbox import identity

VERSION = "1.41"
"""Of the daemon's interface: the first with `cgroupns` (Docker 20.10)."""
OWNER = "agent-rl.owner"
EXPIRES = "agent-rl.expires"
LEASE_S = 24 * 3600.0
"""A container of another boot or pid namespace is left alone for so long."""


def labels() -> dict[str, str]:
    """Labels that name this process, across boots and pid namespaces, and say when nobody can still need it."""
    return {OWNER: own_name(), EXPIRES: str(int(time.time() + LEASE_S))}


def own_name() -> str:
    """This process as `<boot>/<pid namespace>/<pid>-<start>`."""
    return f"{identity.boot_id()}/{identity.pid_namespace()}/{identity.own_name()}"


def is_dead(labels: dict[str, str]) -> bool:
    """Whether the process that set these labels is gone; of one elsewhere, whether its lease is over."""
    boot, _, rest = labels.get(OWNER, "").partition("/")
    namespace, _, process = rest.partition("/")
    if boot == identity.boot_id() and namespace == identity.pid_namespace():
        pid, _, start = process.partition("-")
        return not (
            pid.isdigit() and os.path.exists(f"/proc/{pid}") and str(identity.start_ticks(int(pid))) == start
        )
    expires = labels.get(EXPIRES, "")
    return not expires.isdigit() or time.time() > int(expires)

"""What a server allows."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sandbox.errors import SandboxUnavailable
from sandbox.network import Policy
from sandbox.remote import wire
from sandbox.remote.tokens import check_token
from sandbox.types import MIB, CapabilityReport, Limits

GIB = 1024 * MIB
MAX_LIMITS = Limits(
    memory_bytes=4 * GIB,
    processes=1024,
    open_files=4096,
    file_bytes=GIB,
    workspace_bytes=GIB,
    tmp_bytes=GIB,
    max_output_bytes=MIB,
    kill_output_bytes=GIB,
    timeout_s=600.0,
    idle_timeout_s=600.0,
)
_NEVER_SERVED = {
    "local": "it isolates nothing",
    "remote": "a server passes nothing on to another server",
}

_NO_ALLOW = "this server's operator has registered no destination (agent-rl serve sandbox --allow HOST:PORT)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a server allows; numbers are per client (one token is one client), unless they say otherwise.

    Raises:
        ValueError: a combination that would not be safe, or a number that is not positive.
    """

    websocket: ClassVar[bool] = False
    """Whether requests may come through a WebSocket."""
    host: str = "127.0.0.1"
    port: int = 8700
    """0 picks a free one."""
    backend: str = "bubblewrap"
    bases: Mapping[str, str] = field(default_factory=dict)
    """What clients may ask for by `SandboxSpec.base` -> what the backend calls it."""
    allow: tuple[str, ...] = ()
    """What clients may name in `SandboxSpec.allow`, or a part of it: entries such as `*.example.org:443`."""
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Token by client's name; may be empty only on loopback."""
    max_limits: Limits = MAX_LIMITS
    """What one sandbox may ask for at most."""
    max_sandboxes: int = 256
    max_snapshots: int = 1024
    max_shells: int = 256
    max_leases: int = 64
    max_bytes: int = 64 * GIB
    """Sum of the workspace limits of all sandboxes and snapshots."""
    max_execs: int = 512
    """Programs and commands running or waiting."""
    running: int = field(default_factory=lambda: max(16, 8 * (os.cpu_count() or 1)))
    """Programs and commands running at once, of all clients."""
    queued: int = 1024
    """Programs and commands waiting for a place, of all clients."""
    max_body_bytes: int = 256 * MIB
    """Size of one request, and of one file read."""
    buffered_bytes: int = GIB
    """Bodies in memory at once, of all clients; further ones are read later."""
    lease_s: float = 60.0
    """A client that is silent for so long loses its sandboxes."""
    poll_s: float = 20.0
    """A request that takes longer is answered by `still running`, and the client asks again."""
    body_s: float = 120.0
    """A request must have arrived by then."""
    keep_s: float = 120.0
    keep_number: int = 256
    keep_bytes: int = 16 * MIB
    """Results kept for repeated requests, per lease."""
    drain_s: float = 30.0
    """How long running programs may take to finish once the server was told to stop."""

    def __post_init__(self) -> None:
        name = self.backend.partition(":")[0]
        if name in _NEVER_SERVED:
            raise ValueError(f"the backend {name!r} is not served: {_NEVER_SERVED[name]}; choose another")
        if not self.tokens and not self.loopback:
            raise ValueError(
                f"listening on {self.host} needs a token, because others can reach it; give --token-file, "
                "or set AGENT_RL_SANDBOX_TOKEN, or listen on 127.0.0.1"
            )
        if self.poll_s > wire.MAX_POLL_S:
            raise ValueError(
                f"poll_s is {self.poll_s:g}; clients wait {wire.MAX_POLL_S:g} s for an answer at most"
            )
        Policy.parse(self.allow)
        for token in self.tokens.values():
            check_token(token)
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and item.name != "port" and not value > 0:
                raise ValueError(f"{item.name} must be positive, not {value!r}")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def base(self, name: str) -> str:
        """What the backend calls a base.

        Raises:
            SandboxUnavailable: there is none of this name.
        """
        if not name:
            return ""
        if name not in self.bases:
            known = ", ".join(sorted(self.bases)) or "none, leave it out"
            raise SandboxUnavailable(f"this server has no base {name!r}. Registered: {known}")
        return self.bases[name]

    def check_allow(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The destinations that a client asks for, when the operator has registered all of them.

        Raises:
            SandboxUnavailable: one is not among the registered ones.
            ValueError: one is not `host:port`.
        """
        registered = Policy.parse(self.allow)
        for entry in wanted:
            if not registered.covers(entry):
                known = ", ".join(self.allow) or "none, leave it out"
                raise SandboxUnavailable(
                    f"this server does not let clients reach {entry!r}. Registered: {known}"
                )
        return tuple(wanted)

    def offered(self, report: CapabilityReport) -> CapabilityReport:
        """What of the backend's capabilities clients get."""
        if self.allow or "allow_list" not in report.enforced:
            return report
        missing = {**report.missing, "allow_list": _NO_ALLOW}
        return dataclasses.replace(report, enforced=report.enforced - {"allow_list"}, missing=missing)

    def check_limits(self, limits: Limits) -> None:
        """Refuse what is above the server's maximum.

        Raises:
            ValueError: with the limit and the maximum.
        """
        for item in dataclasses.fields(limits):
            value, most = getattr(limits, item.name), getattr(self.max_limits, item.name)
            if value is not None and most is not None and not value <= most:
                raise ValueError(
                    f"limits.{item.name} is {value:g}, but this server allows at most {most:g}; lower it"
                )

    def check_timeout(self, timeout_s: float | None) -> None:
        """Refuse a deadline above the server's maximum.

        Raises:
            ValueError: with the maximum.
        """
        if timeout_s is not None and not timeout_s <= self.max_limits.timeout_s:
            raise ValueError(
                f"timeout_s is {timeout_s:g}, but this server allows at most {self.max_limits.timeout_s:g}; lower it"
            )

"""The nouns of the sandbox layer: limits, spec, result, capability report. All of them are frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Reason = Literal["ok", "timeout", "idle_timeout", "oom", "pids", "disk", "output", "killed", "sandbox_lost"]
"""Why `exec` returned. All but `sandbox_lost` are results that the model sees; `sandbox_lost` needs evidence
from outside the sandbox."""

Profile = Literal["strict", "image"]
"""How programs are confined; `image` is for images that need root or a writable system, where a backend has it."""

KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one sandbox may use."""

    memory_bytes: int = 512 * MIB
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 64 * MIB
    workspace_bytes: int = 64 * MIB
    tmp_bytes: int = 64 * MIB
    system_bytes: int = 1024 * MIB
    """What may be written outside the workspace, with `SandboxSpec(profile="image")`."""
    max_output_bytes: int = 64 * KIB
    """Per stream: the head and the tail are kept, half each."""
    kill_output_bytes: int = 64 * MIB
    """A program that writes more than this is killed with reason `output`."""
    timeout_s: float = 10.0
    idle_timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What to start."""

    limits: Limits = Limits()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Initial workspace, by path relative to it."""
    env: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    """Hosts that programs may reach through the proxy, as `host:port` or `*.host:port`; none by default."""
    base: str = ""
    """Root file system: empty for the backend's own, else what the backend calls it, such as a Docker image."""
    profile: Profile = "strict"
    """With `image`, programs are root of `base` in a user namespace and may change its system, within `limits`."""
    require: frozenset[str] = frozenset()
    """Capabilities (see `CapabilityReport`) without which the sandbox must not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One stream: head and tail as bytes, and how many bytes the program wrote."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0

    @property
    def truncated_bytes(self) -> int:
        """Bytes between head and tail that were not kept."""
        return self.total_bytes - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        """UTF-8 with replacement characters; the cut, if any, is marked."""
        head = self.head.decode("utf-8", "replace")
        tail = self.tail.decode("utf-8", "replace")
        return (
            f"{head}\n... [{self.truncated_bytes} bytes cut] ...\n{tail}"
            if self.truncated_bytes
            else head + tail
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an `exec` used."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    queue_s: float = 0.0
    """Waiting for a free place at a server; not part of `wall_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """What a program did. `exit_code` is None when it did not exit by itself; negative for a signal."""

    exit_code: int | None
    stdout: Output
    stderr: Output
    reason: Reason
    usage: Usage = Usage()

    @property
    def ok(self) -> bool:
        """Whether it ran to its end and exited with 0."""
        return self.reason == "ok" and self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityReport:
    """What a backend can enforce on this machine; each missing capability says why."""

    backend: str
    enforced: frozenset[str]
    missing: Mapping[str, str] = field(default_factory=dict)

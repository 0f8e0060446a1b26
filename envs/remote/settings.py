"""What a server of environments allows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from envs.remote.wire import MAX_BYTES
from sandbox.remote.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSettings(Settings):
    """Address, tokens, leases and results as for sandboxes, and what concerns environments.

    Raises:
        ValueError: a combination that would not be safe, or a number that is not positive.
    """

    websocket: ClassVar[bool] = True
    env: str
    """Id, `package.module:Class` or file of the environment that is served."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Given to its constructor."""
    port: int = 8701
    capacity: int = 64
    """Live episodes at once, of all clients; the next ones wait, fairly among clients."""
    max_held: int = 1024
    """Snapshots of one lease."""
    threads: int = field(default_factory=lambda: max(8, 4 * (os.cpu_count() or 1)))
    """Calls of environments at once; more wait, and the waiting does not count against the deadline."""
    deadline_s: float = 60.0
    """Of one reset, step, snapshot or restore; afterwards the episode is interrupted and gone."""
    answers: bool = False
    """Whether tasks are handed out with their answers. Without them a client can play and be graded, but not see what
    would be right: the server keeps the answers of the tasks that it handed out."""
    max_tasks: int = 100_000
    """Tasks whose answers are kept; the oldest are forgotten."""
    max_body_bytes: int = MAX_BYTES

"""What a sandbox may reach: nothing, or named hosts through a proxy outside it, over one Unix socket."""

from __future__ import annotations

from sandbox.network.policy import Policy, Refused
from sandbox.network.proxy import Attempt, Proxy

__all__ = ["Attempt", "Policy", "Proxy", "Refused"]

"""What the model sees of its own past: one rule a file."""

from __future__ import annotations

from agent_rl.context.append_only import AppendOnly
from agent_rl.context.config import ContextConfig
from agent_rl.context.summarize import Summarize
from agent_rl.types.names import resolve
from agent_rl.types.seams import ContextManager

MANAGERS = {"append_only": AppendOnly, "summarize": Summarize}


def make(config: ContextConfig, room: int) -> ContextManager:
    """The context manager that `config.name` names; `room` is the longest state that leaves one for an action."""
    manager: ContextManager = resolve("context.name", config.name, MANAGERS)(config, room)
    return manager


__all__ = ["MANAGERS", "AppendOnly", "ContextConfig", "Summarize", "make"]

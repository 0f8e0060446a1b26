"""Whose fault it is, seen from a tool.

    Exception
    ├── ToolError      the model's mistake: becomes an observation it can read and correct
    └── OSError
        └── TimeoutError
            └── ToolTimeout    the harness: a tool outlasted its limit and was interrupted

Every other exception that a tool raises is the environment's bug: it passes through a `Toolbox` unchanged and
the environment turns it into a fault.
"""

from __future__ import annotations


class ToolError(Exception):
    """The model's mistake. The message is shown to the model: rule, actual value, valid form."""


class ToolTimeout(TimeoutError):
    """A tool outlasted its limit. Never shown to the model: the harness chose the limit, not the model."""

    def __init__(self, tool: str, timeout_s: float) -> None:
        super().__init__(
            f"tool {tool!r} did not return within {timeout_s:g} s and was interrupted; "
            "close the environment, it must not be used again"
        )
        self.tool = tool
        self.timeout_s = timeout_s

"""Everything this layer raises.

SandboxError
├── SandboxUnavailable   the backend cannot run on this machine, or cannot enforce what was required
├── SandboxLost          the machinery around a sandbox is gone: a fault, retryable
├── ImageError           an image could not be built; `log` has the end of what the build said
├── SandboxClosed        used after close: a programming error
├── SandboxBusy          refused while a shell is open
└── SandboxPathError     a path that the host must not touch (also a ValueError)
"""

from __future__ import annotations


class SandboxError(RuntimeError):
    """Root of this layer's errors."""


class SandboxUnavailable(SandboxError):
    """The backend cannot start here; the message names what is missing and how to get it."""


class SandboxLost(SandboxError):
    """The sandbox's host process or daemon is gone, by evidence from outside the sandbox."""


class ImageError(SandboxError):
    """An image could not be built; the message says which rule or step stopped it."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log
        """The end of what the build printed: text of programs, so for people only."""


class SandboxClosed(SandboxError):
    """The sandbox was closed."""


class SandboxBusy(SandboxError):
    """The operation is refused while a shell is open."""


class SandboxPathError(SandboxError, ValueError):
    """A path leaves the workspace, crosses a link, or is not a regular file."""

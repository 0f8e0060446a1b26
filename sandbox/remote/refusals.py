"""The closed list of refusals: how an error of the server's side becomes the same error at the client's.

The code decides, never the text. `draining`, `overloaded` and `quota` say that nothing was started.
"""

from __future__ import annotations

from typing import NamedTuple

from sandbox.errors import (
    SandboxBusy,
    SandboxClosed,
    SandboxError,
    SandboxLost,
    SandboxPathError,
    SandboxUnavailable,
)

MAX_MESSAGE = 2000


class Refusal(NamedTuple):
    """HTTP status, and what the client raises."""

    status: int
    error: type[Exception]


REFUSALS = {
    "malformed": Refusal(400, SandboxError),
    "unauthorized": Refusal(401, SandboxUnavailable),
    "quota": Refusal(403, SandboxUnavailable),
    "conflict": Refusal(409, SandboxError),
    "closed": Refusal(410, SandboxClosed),
    "lost": Refusal(410, SandboxLost),
    "lease": Refusal(410, SandboxLost),
    "too_large": Refusal(413, ValueError),
    "host": Refusal(421, SandboxUnavailable),
    "busy": Refusal(422, SandboxBusy),
    "path": Refusal(422, SandboxPathError),
    "value": Refusal(422, ValueError),
    "unavailable": Refusal(422, SandboxUnavailable),
    "error": Refusal(422, SandboxError),
    "overloaded": Refusal(429, SandboxUnavailable),
    "internal": Refusal(500, SandboxLost),
    "draining": Refusal(503, SandboxUnavailable),
}
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (SandboxPathError, "path"),  # before its parent ValueError
    (SandboxClosed, "closed"),
    (SandboxBusy, "busy"),
    (SandboxLost, "lost"),
    (SandboxUnavailable, "unavailable"),
    (SandboxError, "error"),
    (ValueError, "value"),
)


class Refused(Exception):
    """The server will not do it."""

    def __init__(self, code: str, message: str, *, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.code, self.message, self.retry_after_s = code, message[:MAX_MESSAGE], retry_after_s

    @property
    def started_nothing(self) -> bool:
        """Whether the same request may come again as if it were new."""
        return self.code in ("draining", "overloaded", "quota")


def code_of(error: Exception) -> str | None:
    """The code of an error of a backend; None for one that no backend should raise."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)


def error_of(code: str, message: str) -> Exception:
    """What the client raises; an unknown code is a server that is not ours."""
    refusal = REFUSALS.get(code)
    if refusal is None:
        return SandboxLost(f"the server refused with a code that does not exist: {printable(code[:80])!r}")
    return refusal.error(printable(message[:MAX_MESSAGE]))


def printable(text: str) -> str:
    """Text of the other side without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)

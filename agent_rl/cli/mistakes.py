"""Which errors are a user's mistake or a full disk, and how to say so in one sentence."""

from __future__ import annotations

import errno
from pathlib import Path

_OURS = {"agent_rl", "envs", "tools", "sandbox"}


def explain(error: BaseException) -> str | None:
    """One sentence with the next step, or None when the traceback says more."""
    if isinstance(error, ImportError):
        missing = (error.name or "").partition(".")[0]
        if missing in {"torch", "transformers", "safetensors", "tokenizers"}:
            return f"{missing} is not installed; training and model evaluation need: pip install 'agent-rl[train]'"
        return None
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        where = f" while writing {error.filename}" if error.filename else ""
        return (
            f"the disk is full{where} ({error.strerror}); nothing that was committed is lost: free some space "
            "and run the same command, it continues from the newest checkpoint"
        )
    if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError):
        return f"{error.strerror}: {error.filename}"
    raised_by_us = error.__traceback__ is not None and _last_module(error) in _OURS
    return str(error) if raised_by_us and not isinstance(error, AssertionError) else None


def _last_module(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", Path("").name))
    return name.partition(".")[0]

"""What this family needs beyond the project's own dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from envs.errors import EnvError

PACKAGES = frozenset({"selectolax", "jinja2", "playwright", "miniwob"})


@contextmanager
def needs_web() -> Iterator[None]:
    """Import modules of the extra `web`.

    Raises:
        EnvError: one of its packages is not installed; the message names the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in PACKAGES:
            raise
        raise missing(name) from error


def missing(package: str) -> EnvError:
    """The error for a package that is not installed."""
    return EnvError(f"web-v1 needs the package {package}: pip install 'agent-rl[web]'")

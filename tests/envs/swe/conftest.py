from __future__ import annotations

import pytest

import sandbox
from sandbox.errors import SandboxUnavailable
from sandbox.types import SandboxSpec


@pytest.fixture(scope="session")
def backend() -> str:
    """The backend under test; skips where it cannot run."""
    try:
        with sandbox.create(SandboxSpec(), backend="bubblewrap") as box:
            box.exec(["true"])
    except SandboxUnavailable as error:
        pytest.skip(f"bubblewrap cannot run here: {error}")
    return "bubblewrap"

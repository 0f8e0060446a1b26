from __future__ import annotations

from collections.abc import Iterator

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from tests.sandbox.conftest import SMALL
from tests.sandbox.docker import engine


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The socket of an engine that is there for these tests alone."""
    try:
        with engine.running() as found:
            report = sandbox.capabilities(f"docker:{found}")
            if "exec" in report.missing:
                pytest.skip(report.missing["exec"])
            yield found
    except engine.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def backend(address: str) -> str:
    return f"docker:{address}"


@pytest.fixture
def box(backend: str) -> Iterator[Sandbox]:
    """A small sandbox; whatever a test did to it, it must work afterwards."""
    with sandbox.create(SandboxSpec(limits=SMALL), backend) as made:
        yield made
        assert made.exec(["/bin/echo", "fine"]).stdout.text == "fine\n"

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from tests.sandbox.conftest import SMALL


@pytest.fixture(scope="session", autouse=True)
def _runs() -> None:
    report = sandbox.capabilities("gvisor")
    if "exec" in report.missing:
        pytest.skip(report.missing["exec"])


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """One for all tests of a file, because a start takes a while here."""
    with sandbox.create(SandboxSpec(limits=SMALL, files={"a/f": b"x"}), "gvisor") as made:
        yield made
        assert made.exec(["/bin/echo", "fine"]).stdout.text == "fine\n"

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec
from sandbox.conformance import Subject
from sandbox.conformance.subject import LIMITS

SMALL = LIMITS


@pytest.fixture(scope="session", autouse=True)
def _can_run() -> None:
    report = sandbox.capabilities("bubblewrap")
    if "exec" in report.missing:
        pytest.skip(report.missing["exec"])


@pytest.fixture(scope="session")
def subject() -> Subject:
    """Bubblewrap, as a conformance case sees it."""
    return Subject.of("bubblewrap")


@pytest.fixture
def box() -> Iterator[Sandbox]:
    """A small sandbox; whatever a test did to it, it must work afterwards."""
    with sandbox.create(SandboxSpec(limits=SMALL)) as made:
        yield made
        assert made.exec(["/bin/echo", "fine"]).stdout.text == "fine\n"


def needs(*capabilities: str) -> None:
    missing = sandbox.capabilities("bubblewrap").missing
    for name in capabilities:
        if name in missing:
            pytest.skip(f"{name}: {missing[name]}")


def python(box: Sandbox, code: str, **options: float) -> sandbox.ExecResult:
    return box.exec(["/usr/bin/python3", "-I", "-S", "-c", code], timeout_s=options.get("timeout_s"))

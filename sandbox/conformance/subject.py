"""The backend under test, and how a case looks at it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import sandbox
from sandbox.base import Sandbox, Shell
from sandbox.conformance.report import Broken, Unenforceable
from sandbox.types import MIB, CapabilityReport, ExecResult, Limits, SandboxSpec

SMALL = Limits(
    memory_bytes=96 * MIB,
    processes=24,
    open_files=64,
    file_bytes=8 * MIB,
    workspace_bytes=4 * MIB,
    tmp_bytes=4 * MIB,
    max_output_bytes=2000,
    kill_output_bytes=4 * MIB,
    timeout_s=20.0,
)
"""What every case runs under, so that a bomb is cheap."""


class Subject:
    """One backend. Cases see nothing of it but the seam."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.report: CapabilityReport = sandbox.capabilities(backend)

    def needs(self, *capabilities: str) -> None:
        """Go on only where these are enforced.

        Raises:
            Unenforceable: one is not, with the backend's reason.
        """
        for name in capabilities:
            if name not in self.report.enforced:
                raise Unenforceable(f"{name}: {self.report.missing.get(name, 'not offered by this backend')}")

    def create(self, *, limits: Limits = SMALL, **spec: Any) -> Sandbox:
        """A sandbox of small limits; the caller closes it."""
        return sandbox.create(SandboxSpec(limits=limits, **spec), self.backend)

    @contextlib.contextmanager
    def box(self, **changed: Any) -> Iterator[Sandbox]:
        """A sandbox, closed at the end; whatever a case did to it, it must work afterwards.

        `changed` are limits other than the small ones.
        """
        with self.create(limits=replace(SMALL, **changed)) as made:
            yield made
            said = made.exec(["/bin/echo", "fine"]).stdout.text
            equal(said, "fine\n", "a program after the case")

    @contextlib.contextmanager
    def shell(self) -> Iterator[tuple[Sandbox, Shell]]:
        """A sandbox with an open shell."""
        with self.box() as made, contextlib.closing(made.shell()) as opened:
            yield made, opened


def bash(box: Sandbox, script: str, **options: Any) -> ExecResult:
    """Run a bash script."""
    return box.exec(["/bin/bash", "-c", script], **options)


def python(box: Sandbox, code: str, **options: Any) -> ExecResult:
    """Run a Python program."""
    return box.exec(["/usr/bin/python3", "-I", "-S", "-c", code], **options)


def equal(found: object, expected: object, what: str) -> None:
    """Compare.

    Raises:
        Broken: they differ.
    """
    if found != expected:
        raise Broken(f"{what}: expected {expected!r:.300}, found {found!r:.300}")


def true(condition: object, what: str) -> None:
    """Require.

    Raises:
        Broken: it does not hold; `what` says what was expected and what was found.
    """
    if not condition:
        raise Broken(what)


def raises(
    kind: type[BaseException] | tuple[type[BaseException], ...], what: str, do: Callable[[], object]
) -> None:
    """Require an error.

    Raises:
        Broken: nothing was raised. Another error goes through and is a failure of the case.
    """
    try:
        found = do()
    except kind:
        return
    raise Broken(f"{what} must be refused, but it gave {found!r:.200}")

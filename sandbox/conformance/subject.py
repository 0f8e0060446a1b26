"""The backend under test, as a case sees it, and how a case says what it wants."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import Any

import sandbox
from sandbox.base import Sandbox
from sandbox.conformance.report import Broken, Unenforceable
from sandbox.types import MIB, CapabilityReport, ExecResult, Limits, SandboxSpec

LIMITS = Limits(
    memory_bytes=96 * MIB,
    processes=24,
    open_files=64,
    file_bytes=8 * MIB,
    workspace_bytes=4 * MIB,
    tmp_bytes=4 * MIB,
    max_output_bytes=2000,
    kill_output_bytes=4 * MIB,
    timeout_s=30.0,
)
"""Small, so that a case reaches them soon."""


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """One backend on one machine.

    `backend` is as given to `sandbox.create`; `base` is the root file system to ask for; `shares_host` tells whether
    its programs run on this machine, where this process could see them; `launch_s` is how long a program takes that
    does nothing.
    """

    backend: str
    report: CapabilityReport
    base: str
    shares_host: bool
    launch_s: float

    @classmethod
    def of(cls, backend: str, *, base: str = "", shares_host: bool = True) -> Subject:
        """Try the backend once.

        Raises:
            Broken: it cannot run, or a program that does nothing fails.
            ValueError: there is no such backend.
        """
        report = sandbox.capabilities(backend)
        if "exec" in report.missing:
            raise Broken(report.missing["exec"])
        subject = cls(backend, report, base, shares_host, 0.0)
        with subject.box() as box:
            started = time.monotonic()
            succeeds(box.exec(["true"]), "true")
            return dataclasses.replace(subject, launch_s=time.monotonic() - started)

    @property
    def deadline_s(self) -> float:
        """A deadline that a program outlives only if it means to."""
        return 0.3 + 6 * self.launch_s

    def spec(
        self,
        *,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        require: frozenset[str] = frozenset(),
        **limits: Any,
    ) -> SandboxSpec:
        """A specification with small limits, of which some are replaced."""
        return SandboxSpec(
            limits=dataclasses.replace(LIMITS, **limits),
            files=files or {},
            env=env or {},
            base=self.base,
            require=require,
        )

    def create(self, **changes: Any) -> Sandbox:
        """A sandbox; the caller closes it. For the changes see `spec`."""
        return sandbox.create(self.spec(**changes), self.backend)

    @contextlib.contextmanager
    def box(self, **changes: Any) -> Iterator[Sandbox]:
        """A sandbox; whatever a case did to it, a program must work in it afterwards."""
        with self.create(**changes) as made:
            yield made
            equal(made.exec(["echo", "fine"]).stdout.text, "fine\n", "a program after the case")

    def needs(self, *capabilities: str) -> None:
        """Go on only where all are enforced.

        Raises:
            Unenforceable: with the backend's own reason.
        """
        for name in capabilities:
            if name not in self.report.enforced:
                why = self.report.missing.get(name, f"{self.report.backend} declares no such capability")
                raise Unenforceable(f"{name}: {why}")

    def needs_host(self) -> None:
        """Go on only where this process could see the programs.

        Raises:
            Unenforceable: they run on another machine.
        """
        if not self.shares_host:
            raise Unenforceable("programs run on another machine, which this process cannot look at")


def python(box: Sandbox, code: str, **options: Any) -> ExecResult:
    """Run Python code in a sandbox, away from what a program planted there."""
    return box.exec(["python3", "-I", "-S", "-c", code], **options)


def bash(box: Sandbox, script: str, **options: Any) -> ExecResult:
    """Run a script in a sandbox."""
    return box.exec(["bash", "-c", script], **options)


def equal(found: object, expected: object, what: str) -> None:
    """Demand equality.

    Raises:
        Broken: with both values.
    """
    if found != expected:
        raise Broken(f"{what}: expected {expected!r:.300}, found {found!r:.300}")


def demand(held: bool, what: str) -> None:
    """Demand a condition; `what` says what was found instead.

    Raises:
        Broken: it does not hold.
    """
    if not held:
        raise Broken(what[:600])


def succeeds(result: ExecResult, what: str) -> ExecResult:
    """Demand that a program ran to its end with exit code 0, and return its result.

    Raises:
        Broken: with what it said.
    """
    demand(
        result.ok,
        f"{what}: exit code {result.exit_code}, {result.reason}, {result.stderr.text.strip()!r:.300}",
    )
    return result


@contextlib.contextmanager
def refused(
    kind: type[BaseException] | tuple[type[BaseException], ...], what: str, *, saying: str = ""
) -> Iterator[None]:
    """Demand that the block raises `kind` with `saying` in its message.

    Raises:
        Broken: it raises nothing, or says something else.
    """
    try:
        yield
    except kind as error:
        demand(saying in str(error), f"{what}: the message lacks {saying!r}: {error}")
        return
    raise Broken(f"{what}: expected {kind!r}, but nothing was raised")

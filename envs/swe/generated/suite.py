"""The test suite of a drawn package: one test a call, so that each can be hidden or shown by itself."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from envs.code.driver import decode
from envs.code.problem import Args
from envs.swe.generated.package import Function, Package
from envs.swe.generated.running import outcome

CALLS, REPORT_CALLS = 8, 3
"""Tests of each function and of each report."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: a call and the value that it must return."""

    module: str
    name: str
    function: str
    args: Args
    expected: Any

    @property
    def id(self) -> str:
        """The node id that pytest gives it."""
        return f"{file_of(self.module)}::{self.name}"

    def passes(self, loaded: Mapping[str, ModuleType]) -> bool:
        """Whether it passes on a loaded package."""
        seen = outcome(getattr(loaded[self.module], self.function), self.args)
        return "value" in seen and bool(decode(seen["value"]) == self.expected)


def file_of(module: str) -> str:
    """The test file of a module."""
    return f"tests/test_{module}.py"


def suite(package: Package, loaded: Mapping[str, ModuleType], rng: random.Random) -> list[Case]:
    """Tests of every function and report, whose inputs are drawn and whose results come from the package itself."""
    cases = []
    for function in (*package.functions, *package.reports):
        n = REPORT_CALLS if function.calls else CALLS
        for at, args in enumerate(inputs(function, rng, n), start=1):
            seen = outcome(getattr(loaded[function.module], function.name), args)
            if "value" in seen:
                name = f"test_{function.name}_{at}"
                cases.append(Case(function.module, name, function.name, args, decode(seen["value"])))
    return cases


def inputs(function: Function, rng: random.Random, n: int, taken: Iterable[Args] = ()) -> list[Args]:
    """Up to `n` different inputs, some of them edge cases, none of them in `taken`."""
    seen = {repr(args) for args in taken}
    found: list[Args] = []
    edges = rng.sample(function.edges, min(len(function.edges), n // 3))
    for args in [*edges, *(function.draw(rng) for _ in range(4 * n))]:
        if repr(args) not in seen and len(found) < n:
            seen.add(repr(args))
            found.append(args)
    return found


def test_files(package: str, cases: Iterable[Case]) -> dict[str, str]:
    """The test files of these cases; a file without any case is left out."""
    by_module: dict[str, list[Case]] = {}
    for case in cases:
        by_module.setdefault(case.module, []).append(case)
    return {file_of(module): _test_file(package, module, tests) for module, tests in by_module.items()}


def _test_file(package: str, module: str, cases: list[Case]) -> str:
    parts = [f'"""Tests of {package}.{module}."""\n\nfrom {package} import {module}\n']
    for case in cases:
        args = ", ".join(map(repr, case.args))
        parts.append(
            f"def {case.name}():\n    assert {module}.{case.function}({args}) == {case.expected!r}\n"
        )
    return "\n\n".join(parts)

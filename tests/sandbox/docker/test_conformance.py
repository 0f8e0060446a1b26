"""The shipped suite over the Docker backend."""

from __future__ import annotations

import pytest

from sandbox import conformance

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("name", conformance.CASES)
def test_docker(name: str, backend: str) -> None:
    report = conformance.run(backend, cases=[name])
    assert report.passed, report.text()
    assert [case.status for case in report.cases] == ["pass"], report.text()

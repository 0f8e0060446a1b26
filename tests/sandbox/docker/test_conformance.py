"""The shipped suite over the Docker backend."""

from __future__ import annotations

import pytest

from sandbox import conformance

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("name", conformance.CASES)
def test_docker(name: str, backend: str) -> None:
    report = conformance.run(backend, cases=[name], shares_host=True)
    assert report.passed, report.text()
    assert name in conformance.allowed(backend) or report.cases[0].status == "pass", report.text()

"""The shipped suite over the Docker backend, and over a server that serves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import conformance
from sandbox.remote import connection
from sandbox.remote.serving import running
from sandbox.remote.settings import Settings

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def server(backend: str) -> Iterator[str]:
    with running(Settings(port=0, backend=backend, lease_s=8.0)) as address:
        try:
            yield address
        finally:
            connection.disconnect()


@pytest.mark.parametrize("name", conformance.CASES)
def test_docker(name: str, backend: str) -> None:
    report = conformance.run(backend, cases=[name], shares_host=True)
    assert report.passed, report.text()
    assert name in conformance.allowed(backend) or report.cases[0].status == "pass", report.text()


@pytest.mark.parametrize("name", conformance.CASES)
def test_docker_through_a_server(name: str, server: str) -> None:
    report = conformance.run(f"remote:{server}", cases=[name], shares_host=True)
    assert report.passed, report.text()
    listed = conformance.allowed("remote", "remote:docker").keys() - conformance.allowed("remote").keys()
    assert name in listed or report.cases[0].status == "pass", report.text()

"""The shipped suite over the gVisor backend."""

from __future__ import annotations

import pytest

from sandbox import conformance

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", conformance.CASES)
def test_gvisor(name: str) -> None:
    report = conformance.run("gvisor", cases=[name])
    assert report.passed, report.text()
    listed = {*conformance.allowed("gvisor"), *conformance.deviations("gvisor")}
    assert name in listed or report.cases[0].status == "pass", report.text()

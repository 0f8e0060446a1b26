"""The suite that every backend must pass, through a server."""

from __future__ import annotations

import pytest

from sandbox.conformance.matrix import served


@pytest.mark.slow
def test_bubblewrap_through_a_server_passes_every_case() -> None:
    report = served("bubblewrap", lambda name: None)
    assert report.passed, report.text()
    assert [case.name for case in report.cases if case.status != "pass"] == []

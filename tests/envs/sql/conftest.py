from __future__ import annotations

from collections.abc import Iterator

import pytest

from envs.sql import pool


@pytest.fixture(scope="session", autouse=True)
def workers() -> Iterator[None]:
    yield
    pool.close_all()

"""Settings of storage."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StorageConfig(BaseModel):
    """Where rows go; forests always stand in the run's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = ""
    """SQLAlchemy URL such as `postgresql+psycopg://user@host/runs`; empty means a SQLite file in the run's
    folder."""

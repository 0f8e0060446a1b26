"""The tables. They are the same in SQLite and PostgreSQL, and several runs may share a database."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Integer, MetaData, String, Table

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String, nullable=False),
    Column("config", JSON, nullable=False),
    Column("seed", Integer, nullable=False),
    Column("created", String, nullable=False),  # ISO 8601, UTC
    Column("status", String, nullable=False),  # running | finished | failed | whatever the caller says
)

steps = Table(
    "steps",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("metrics", JSON, nullable=False),
)

episodes = Table(
    "episodes",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("id", String, primary_key=True),
    Column("step", Integer, nullable=False, index=True),
    Column("group_id", String, nullable=False),
    Column("sample", Integer, nullable=False),
    Column("task_id", String, nullable=False),
    Column("env", String, nullable=False),
    Column("purpose", String, nullable=False),
    Column("reward", Float, nullable=False),  # weighted sum of the episode components
    Column("turn_reward", Float, nullable=False),  # sum over the turns
    Column("stop", String),
    Column("fault", String),  # kind
    Column("turns", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),  # of the episode's actions
    Column("duration_s", Float, nullable=False),  # queue and run times of its turns
)

evaluations = Table(
    "evaluations",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("name", String, primary_key=True),
    Column("step", Integer, nullable=False),  # steps that were finished
    Column("report", JSON, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),  # steps that were finished
    Column("version", Integer, nullable=False),
    Column("path", String, nullable=False),
)

forests = Table(
    "forests",
    metadata,
    Column("run", String(32), primary_key=True),
    Column("step", Integer, primary_key=True, autoincrement=False),
    Column("purpose", String, primary_key=True),
    Column("path", String, nullable=False),  # relative to the run's folder
    Column("bytes", Integer, nullable=False),
    Column("state", String, nullable=False),  # current | replaceable | stale, see Store.truncate_after
    Column("regenerated", Integer, nullable=False),  # how often a resumed run wrote it again
)

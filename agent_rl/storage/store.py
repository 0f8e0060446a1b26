"""Store: everything that a run records.

    run_dir/
        run.json                         which run this is
        store.sqlite                     runs, steps, episodes, evaluations, checkpoints, forests
        forests/step-000003-train.npz    one file a step and purpose, written once

A training step has an index, 0 for the first. An evaluation and a checkpoint are recorded under the number of
steps that were finished before them: 0 stands before the first step.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from agent_rl.storage import atomic, tables
from agent_rl.storage.credits_file import load_credits, save_credits
from agent_rl.storage.database import Database
from agent_rl.storage.errors import DamagedFile
from agent_rl.storage.forest_file import load_forest, save_forest
from agent_rl.storage.rows import episode_row, finite, metric_values, stored_metrics
from agent_rl.types import Credits, Forest, Metrics

RUN_FILE = "run.json"


class Store:
    """The records of one run. Every method commits before it returns; several processes may read meanwhile."""

    def __init__(self, run_dir: Path, run: str, database: Database) -> None:
        """Use `create` or `open`."""
        self.run_dir = run_dir
        self.run = run
        self._database = database

    @classmethod
    def create(
        cls, run_dir: Path | str, config: Mapping[str, Any], seed: int, *, name: str = "", url: str = ""
    ) -> Self:
        """Begin a run in a folder.

        Args:
            run_dir: made when missing; what a crashed `create` left there is used again.
            config: JSON values, the effective configuration.
            seed: of the run.
            name: for people; the folder's name by default.
            url: SQLAlchemy URL; empty means SQLite in the folder.

        Raises:
            FileExistsError: the folder already holds a run with steps.
            StorageFull: there is no space.
        """
        folder = Path(run_dir)
        if (folder / RUN_FILE).exists():
            old = cls.open(folder, url=url)
            if old.steps() or old.checkpoints():
                raise FileExistsError(
                    f"{folder} already holds a run with steps; open it, or choose another folder"
                )
        run = uuid.uuid4().hex
        folder.mkdir(parents=True, exist_ok=True)
        database = Database(folder, url)
        database.create()
        row = {
            "id": run,
            "name": name or folder.resolve().name,
            "config": dict(config),
            "seed": seed,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "status": "running",
        }
        with database.transaction() as connection:
            connection.execute(insert(tables.runs), row)
        atomic.write(folder / RUN_FILE, json.dumps({"id": run, "url": url}).encode())
        return cls(folder, run, database)

    @classmethod
    def open(cls, run_dir: Path | str, *, url: str = "") -> Self:
        """Continue or read a run; `url` is the one that it was created with, unless another is given.

        Raises:
            FileNotFoundError: the folder holds no run.
            DamagedFile: `run.json` was changed.
        """
        folder = Path(run_dir)
        path = folder / RUN_FILE
        if not path.exists():
            raise FileNotFoundError(
                2, "there is no run here; start one with: agent-rl train CONFIG.toml", str(path)
            )
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            run, url = str(content["id"]), url or str(content.get("url", ""))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFile(path, str(error)) from error
        database = Database(folder, url)
        database.create()
        return cls(folder, run, database)

    def info(self) -> dict[str, Any]:
        """The run's row: id, name, config, seed, created, status."""
        with self._database.transaction() as connection:
            row = (
                connection.execute(select(tables.runs).where(tables.runs.c.id == self.run)).mappings().first()
            )
        if row is None:
            raise DamagedFile(self.run_dir / RUN_FILE, f"the database knows no run {self.run}")
        return dict(row)

    def set_status(self, status: str) -> None:
        """Say how the run stands: `running`, `finished`, `stopped` by a person, `failed`."""
        with self._database.transaction() as connection:
            connection.execute(update(tables.runs).where(tables.runs.c.id == self.run).values(status=status))

    def record_step(self, step: int, metrics: Metrics) -> None:
        """Record the metrics of a training step; a step recorded again replaces its row."""
        self._put(tables.steps, {"step": step}, {"metrics": stored_metrics(metrics)})

    def steps(self) -> list[dict[str, Any]]:
        """Rows `{"step", "metrics"}` in order."""
        rows = self._rows(tables.steps, tables.steps.c.step)
        return [{"step": r["step"], "metrics": metric_values(r["metrics"])} for r in rows]

    def record_episodes(self, step: int, forest: Forest) -> None:
        """Record one row an episode of the forest.

        Args:
            step: the training step that collected them, or steps finished before an evaluation.
            forest: holds their turns and nodes.
        """
        rows = [{"run": self.run, "step": step, **episode_row(e, forest)} for e in forest.episodes]
        ids = [row["id"] for row in rows]
        table = tables.episodes
        with self._database.transaction() as connection:
            for start in range(0, len(ids), 500):
                part = ids[start : start + 500]
                connection.execute(delete(table).where(table.c.run == self.run, table.c.id.in_(part)))
            if rows:
                connection.execute(insert(table), rows)

    def episodes(self, step: int | None = None) -> list[dict[str, Any]]:
        """Rows of episodes, of one step or of all."""
        rows = self._rows(tables.episodes, tables.episodes.c.step, tables.episodes.c.id)
        return [r for r in rows if step is None or r["step"] == step]

    def record_evaluation(self, step: int, name: str, report: Mapping[str, Any]) -> None:
        """Record a report after `step` finished steps; the same name again replaces it."""
        self._put(tables.evaluations, {"name": name}, {"step": step, "report": finite(dict(report))})

    def evaluations(self) -> list[dict[str, Any]]:
        """Rows `{"step", "name", "report"}` in order of steps."""
        rows = self._rows(tables.evaluations, tables.evaluations.c.step, tables.evaluations.c.name)
        return [{k: r[k] for k in ("step", "name", "report")} for r in rows]

    def record_checkpoint(self, step: int, version: int, path: str) -> None:
        """Record a checkpoint after `step` finished steps; `path` is relative to the run's folder."""
        self._put(tables.checkpoints, {"step": step}, {"version": version, "path": path})

    def checkpoints(self) -> list[dict[str, Any]]:
        """Rows `{"step", "version", "path"}` in order."""
        rows = self._rows(tables.checkpoints, tables.checkpoints.c.step)
        return [{k: r[k] for k in ("step", "version", "path")} for r in rows]

    def latest_checkpoint(self) -> dict[str, Any] | None:
        """The newest checkpoint whose files still stand, or None."""
        standing = [r for r in self.checkpoints() if (self.run_dir / r["path"]).exists()]
        return standing[-1] if standing else None

    def save_forest(self, step: int, forest: Forest, purpose: str = "train") -> Path:
        """Write the forest of a step, once.

        Raises:
            FileExistsError: it is already there and no resume has taken the run back before it.
            StorageFull: there is no space; everything earlier is intact.
        """
        path = self._forest_path(step, purpose)
        row = self._forest_row(step, purpose)
        if row is not None and row["state"] == "current":
            raise FileExistsError(
                f"forest files are written once, but {path} exists; a resumed run calls truncate_after first"
            )
        again = path.exists()
        size = save_forest(path, forest)
        count = (row["regenerated"] if row else 0) + int(again)
        where = str(path.relative_to(self.run_dir))
        self._put(
            tables.forests,
            {"step": step, "purpose": purpose},
            {"path": where, "bytes": size, "state": "current", "regenerated": count},
        )
        return path

    def load_forest(self, step: int, purpose: str = "train") -> Forest:
        """Read the forest of a step back, exactly.

        Raises:
            FileNotFoundError: it was never written, or a resume took the run back before it.
            DamagedFile: the file was cut or changed.
        """
        row = self._forest_row(step, purpose)
        if row is None or row["state"] == "stale":
            known = [(r["step"], r["purpose"]) for r in self.forests()]
            near = f"; the last is step {known[-1][0]}, {known[-1][1]}" if known else ""
            raise FileNotFoundError(2, f"no {purpose} forest of step {step}{near}", str(self.run_dir))
        return load_forest(self.run_dir / row["path"])

    def forests(self) -> list[dict[str, Any]]:
        """Rows `{"step", "purpose", "path", "bytes", "regenerated"}` of what `load_forest` can read."""
        rows = self._rows(tables.forests, tables.forests.c.step, tables.forests.c.purpose)
        names = ("step", "purpose", "path", "bytes", "regenerated")
        return [{k: r[k] for k in names} for r in rows if r["state"] != "stale"]

    def save_credits(self, step: int, credits: Credits, purpose: str = "train") -> Path:
        """Write credits beside the forest they belong to; crediting again replaces them."""
        path = self._forest_path(step, purpose).with_suffix(".credits.npz")
        save_credits(path, credits)
        return path

    def load_credits(self, step: int, purpose: str = "train") -> Credits:
        """Read the credits of a step.

        Raises:
            FileNotFoundError: there are none.
            DamagedFile: the file was cut or changed.
        """
        return load_credits(self._forest_path(step, purpose).with_suffix(".credits.npz"))

    def truncate_after(self, step: int) -> None:
        """Forget what came after training step `step` (-1: before the first), so that a resumed run repeats it.

        Rows of later steps and their episodes go; so do evaluations and checkpoints after more than `step + 1`
        finished steps. Files stay until the resumed run writes them again: forests of later steps can no longer
        be loaded (stale), evaluations and demonstrations at that very point may be written again (replaceable).
        """
        c = tables.forests.c
        train = c.purpose == "train"
        with self._database.transaction() as connection:
            self._drop(connection, tables.steps, tables.steps.c.step > step)
            e = tables.episodes.c
            self._drop(connection, tables.episodes, and_(e.purpose == "train", e.step > step))
            self._drop(connection, tables.episodes, and_(e.purpose != "train", e.step > step + 1))
            self._drop(connection, tables.evaluations, tables.evaluations.c.step > step + 1)
            self._drop(connection, tables.checkpoints, tables.checkpoints.c.step > step + 1)
            stale = (train & (c.step > step)) | (~train & (c.step > step + 1))
            for where, state in ((stale, "stale"), (~train & (c.step == step + 1), "replaceable")):
                connection.execute(update(tables.forests).where(c.run == self.run, where).values(state=state))

    def _forest_path(self, step: int, purpose: str) -> Path:
        return self.run_dir / "forests" / f"step-{step:06d}-{purpose}.npz"

    def _forest_row(self, step: int, purpose: str) -> dict[str, Any] | None:
        rows = self._rows(tables.forests, tables.forests.c.step)
        return next((r for r in rows if (r["step"], r["purpose"]) == (step, purpose)), None)

    def _rows(self, table: Table, *order: ColumnElement[Any]) -> list[dict[str, Any]]:
        query = select(table).where(table.c.run == self.run).order_by(*order)
        with self._database.transaction() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _put(self, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Insert a row, or replace the one with this key."""
        same = and_(*(table.c[name] == value for name, value in key.items()))
        with self._database.transaction() as connection:
            self._drop(connection, table, same)
            connection.execute(insert(table), {"run": self.run, **key, **values})

    def _drop(self, connection: Connection, table: Table, where: ColumnElement[bool]) -> None:
        connection.execute(delete(table).where(table.c.run == self.run, where))

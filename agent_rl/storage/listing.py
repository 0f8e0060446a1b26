"""The runs below a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from agent_rl.storage.store import RUN_FILE, Store


def list_runs(root: Path | str, *, url: str = "") -> list[dict[str, Any]]:
    """Rows `{"path", "name", "status", "steps", "evaluations", "seed", "created"}`, oldest first.

    Looks into `root` and two levels below. A run that cannot be read is listed with status `damaged`.
    """
    folder = Path(root)
    files = [f for depth in ("", "*/", "*/*/") for f in sorted(folder.glob(depth + RUN_FILE))]
    return sorted((_row(f.parent, url) for f in files), key=lambda r: (r["created"], r["path"]))


def _row(run_dir: Path, url: str) -> dict[str, Any]:
    row: dict[str, Any] = {"path": str(run_dir), "name": run_dir.name, "status": "damaged", "steps": 0}
    row |= {"evaluations": 0, "seed": None, "created": ""}
    try:
        store = Store.open(run_dir, url=url)
        info = store.info()
        row |= {k: info[k] for k in ("name", "status", "seed", "created")}
        row |= {"steps": len(store.steps()), "evaluations": len(store.evaluations())}
    except (SQLAlchemyError, OSError, ValueError):
        return row
    return row

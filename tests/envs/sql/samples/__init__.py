"""Copies the samples to a folder and makes their databases."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent


def build(folder: Path, name: str) -> Path:
    target = folder / name
    shutil.copytree(HERE / name, target)
    for script in target.rglob("*.sql"):
        if "gold" in script.parts:
            continue
        with closing(sqlite3.connect(script.with_suffix(".sqlite"))) as conn:
            conn.executescript(script.read_text())
        script.unlink()
    return target

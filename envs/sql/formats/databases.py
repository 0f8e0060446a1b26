"""Finds the databases of a folder, and reads their tables and what is written about them.

The folder is the user's, its contents are not trusted: paths are opened beneath it with no link followed, tables are
read by a worker under its limits, descriptions are read up to a size and shortened.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.formats import BadRow
from envs.sql import pool
from envs.sql.engine.databases import open_beneath
from envs.sql.pool import WorldError
from envs.sql.queries import Failed, Query, World

SCHEMA_TIME_S = 10.0
MAX_NOTE_CHARS = 200
MAX_FILE_BYTES = 1 << 20
MAX_DATABASES = 200
"""Databases of one directory on which a submission is graded."""
_NAME = re.compile(r"\w[\w .+-]{0,99}")
_SUFFIXES = (".sqlite", ".db", ".sqlite3")


class Databases:
    """The databases beneath a folder; what is known of one is kept for the next row."""

    def __init__(self, folder: Path, homes: Sequence[str]) -> None:
        """`homes` are the directories beneath `folder` in which databases lie, the likeliest first."""
        self.folder = str(folder.resolve())
        self._homes = homes
        self._schemas: dict[str, list[dict[str, Any]]] = {}
        self._found: dict[str, str] = {}

    def find(self, name: str, field: str) -> str:
        """The path of a database: `<home>/<name>/<name>.sqlite` or `<home>/<name>.sqlite`.

        Raises:
            BadRow: there is none.
        """
        if not _NAME.fullmatch(name):
            raise BadRow(field, f"a database is named by letters, digits and _ . + -, got {name!r:.80}")
        if name not in self._found:
            self._found[name] = self._look_for(name, field)
        return self._found[name]

    def _look_for(self, name: str, field: str) -> str:
        tried = []
        for home in self._homes:
            for between in (f"{name}/", ""):
                for suffix in _SUFFIXES:
                    file = f"{home}/{between}{name}{suffix}".lstrip("/")
                    try:
                        os.close(open_beneath(self.folder, file))
                    except OSError:
                        tried.append(file)
                        continue
                    return file
        raise BadRow(
            field,
            f"no regular file of database {name!r} beneath {self.folder}: looked for {tried[0]} and "
            f"{len(tried) - 1} more (links are not followed)",
        )

    def beside(self, file: str, field: str) -> list[str]:
        """The other databases in the directory of one, sorted.

        Raises:
            BadRow: there are too many.
        """
        directory, _, own = file.rpartition("/")
        names = sorted(
            entry.name for entry in os.scandir(Path(self.folder, directory)) if _is_database(entry)
        )
        if len(names) > MAX_DATABASES:
            raise BadRow(
                field, f"a directory has at most {MAX_DATABASES} databases, {directory} has {len(names)}"
            )
        return [f"{directory}/{name}" for name in names if name != own]

    def world(self, file: str) -> World:
        """A database as a world."""
        return World({"folder": self.folder, "file": file})

    def schema(self, file: str, field: str) -> list[dict[str, Any]]:
        """The tables of a database with their columns and notes.

        Raises:
            BadRow: it cannot be read, or has no table.
        """
        if file not in self._schemas:
            notes = self._notes(file)
            self._schemas[file] = [
                {"name": name, "columns": columns, "notes": notes.get(name.lower(), {})}
                for name, columns in self._tables(file, field)
            ]
        return self._schemas[file]

    def _tables(self, file: str, field: str) -> list[tuple[str, list[Any]]]:
        query = Query(world=self.world(file), sql="", kind="schema", time_s=SCHEMA_TIME_S)
        try:
            found = pool.run([query])[0]
        except WorldError as error:
            raise BadRow(field, f"{file}: {error}") from error
        if isinstance(found, Failed):
            raise BadRow(field, f"{file} cannot be read: {found.message}")
        if not found.found:
            raise BadRow(field, f"{file} holds no table")
        return [(name, columns) for name, columns in found.found]

    def _notes(self, file: str) -> dict[str, dict[str, str]]:
        """Descriptions by table and column out of `database_description/<table>.csv`."""
        directory = file.rpartition("/")[0]
        where = Path(self.folder, directory, "database_description")
        if not where.is_dir() or where.is_symlink():
            return {}
        names = sorted(entry.name for entry in os.scandir(where) if entry.name.lower().endswith(".csv"))
        return {
            name[:-4].lower(): _read_notes(self.text(f"{directory}/database_description/{name}"))
            for name in names
        }

    def text(self, file: str, limit: int = MAX_FILE_BYTES) -> str:
        """A text file beneath the folder, up to `limit` bytes; empty when there is none."""
        try:
            with os.fdopen(open_beneath(self.folder, file), "rb") as opened:
                raw = opened.read(limit)
        except OSError:
            return ""
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return raw.decode("latin-1")  # several files of BIRD are


def _is_database(entry: os.DirEntry[str]) -> bool:
    return (
        entry.name.endswith(_SUFFIXES)
        and not entry.name.startswith(".")
        and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    )


def _read_notes(text: str) -> dict[str, str]:
    notes = {}
    reader = csv.DictReader(io.StringIO(text.replace("\0", ""), newline=""))
    try:
        for row in reader:
            cells = {str(key).strip().lower(): value for key, value in row.items() if isinstance(value, str)}
            column = cells.get("original_column_name", "").strip()
            said = [cells.get("column_description", ""), cells.get("value_description", "")]
            note = "; ".join(" ".join(part.split()) for part in said if part.strip())
            if column and note:
                notes[column.lower()] = note[:MAX_NOTE_CHARS]
    except csv.Error:  # a broken description costs the rest of itself, not the database
        return notes
    return notes

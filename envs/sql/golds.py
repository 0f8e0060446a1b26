"""What golds gave, kept for the next submission, and the error of a gold that fails."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from envs.errors import TaskError
from envs.sql.queries import World

_GOLD_KEPT = 4096


class GoldError(TaskError):
    """A task's gold SQL failed: the task is at fault, not the submission."""


def gold_error(message: str) -> GoldError:
    """The error of a gold that failed for this reason."""
    return GoldError(f"the gold SQL of a task must run, but the database says: {message}")


class _Known:
    """Results of gold queries by world and SQL, the most recently used ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, world: World, sql: str) -> Any | None:
        with self._lock:
            return self._known.get((world.key, sql))

    def put(self, world: World, sql: str, found: Any) -> None:
        with self._lock:
            self._known[(world.key, sql)] = found
            while len(self._known) > _GOLD_KEPT:
                self._known.popitem(last=False)


KNOWN = _Known()

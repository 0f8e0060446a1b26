"""Which MiniWoB++ pages are played, and why the others are not."""

from __future__ import annotations

GOLDS: dict[str, str] = {}
EXCLUDED: dict[str, str] = {}

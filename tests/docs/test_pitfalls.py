"""Every test and every case that the page of pitfalls names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from sandbox.conformance import CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/pitfalls.md").read_text()


def test_every_row_names_what_would_fail() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| symptom |" not in line]
    assert len(rows) >= 50
    for row in rows:
        assert re.search(r"`tests/\S+::test_\w+`|case `[\w-]+`", row), row


def test_what_is_named_exists() -> None:
    for file, name in set(re.findall(r"`(tests/[^`]+)::(\w+)`", PAGE)):
        tree = ast.parse((ROOT / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (file, name)
    assert set(re.findall(r"case `([\w-]+)`", PAGE)) <= CASES.keys()

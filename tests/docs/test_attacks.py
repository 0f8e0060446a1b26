"""The page of attacks names every attack that the families ship, and tests that exist and play it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from envs import registry
from envs.errors import EnvError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/attacks.md").read_text()
_ROW = re.compile(r"^\| `([^`]+)` \| .+ \| 0 \| `([^`]+)` \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[^`]+)::(\w+)`")


def section(env_id: str) -> str:
    return PAGE.partition(f"## {env_id}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("env_id", ["code-v1", "sql-v1", "search-v1", "web-v1", "swe-v1"])
def test_every_attack_of_a_family_has_its_row(env_id: str) -> None:
    try:
        policies = registry.spec(env_id).load().policies()
    except EnvError as error:
        pytest.skip(str(error))
    rows = dict(_ROW.findall(section(env_id)))
    assert set(rows) == {name for name, spec in policies.items() if spec.kind == "attack"}
    assert len(rows) >= 5


def test_every_test_that_the_page_names_exists() -> None:
    named = set(_TEST.findall(PAGE))
    assert len(named) >= 10
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (file, name)

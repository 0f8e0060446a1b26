from __future__ import annotations

import pytest

from agent_rl.batching import split
from agent_rl.types import CreditRow, Credits


def test_parts_hold_whole_episodes_in_order() -> None:
    rows = [CreditRow(f"n{i}", 0, 1, float(i), 1.0, f"e{i // 2}", "leaf", float(i)) for i in range(10)]
    parts = split(Credits.of(rows), 2)
    assert [list(dict.fromkeys(p.episodes)) for p in parts] == [["e0", "e1", "e2"], ["e3", "e4"]]
    assert [row for p in parts for row in p] == rows


def test_no_part_is_empty() -> None:
    credits = Credits.of([CreditRow("n", 0, 1, 1.0, 1.0, "e", "leaf")])
    assert len(split(credits, 4)) == 1
    assert split(Credits(), 2) == []


def test_parts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="parts is 0"):
        split(Credits(), 0)

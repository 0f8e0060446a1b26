from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agent_rl.inference.slots import Placement, SlotTable
from agent_rl.types import Int32


def ids(*token_ids: int) -> Int32:
    return np.array(token_ids, dtype=np.int32)


LONG = np.arange(40, dtype=np.int32)


def remember(table: SlotTable, tokens: Int32) -> int:
    (placement,) = table.place([tokens])
    table.advance(placement.slot, len(tokens))
    table.release(placement.slot)
    return placement.slot


def test_common_leaves_out_the_last_token() -> None:
    table = SlotTable(3, 16)
    remember(table, ids(1, 2, 3, 4))
    remember(table, ids(1, 2, 9))
    assert table.common(ids(1, 2, 3, 4)).tolist() == [3, 2, 0]
    assert table.common(ids(1, 2, 3, 4, 5)).tolist() == [4, 2, 0]
    assert table.common(ids(1)).tolist() == [0, 0, 0]


def test_a_next_turn_continues_in_its_slot() -> None:
    table = SlotTable(2, 16)
    remember(table, ids(1, 2, 3))
    assert table.place([ids(1, 2, 3, 4)]) == [Placement(0, 0, 3, 3)]


def test_a_branch_copies_and_the_parent_stays() -> None:
    table = SlotTable(2, 16)
    remember(table, ids(1, 2, 3, 4))
    assert table.place([ids(1, 2, 3, 9)]) == [Placement(1, 0, 3, 3)]
    table.advance(1, 4)
    table.release(1)
    assert table.place([ids(1, 2, 3, 4, 5)]) == [Placement(0, 0, 4, 4)]


def test_newcomers_never_evict_what_their_wave_continues() -> None:
    table = SlotTable(2, 16)
    remember(table, ids(1, 2, 3))  # used least recently
    remember(table, ids(5, 6, 7))
    placements = table.place([ids(8, 9), ids(1, 2, 3, 4)])
    assert placements == [Placement(1, 0, 0, 0), Placement(0, 0, 3, 3)]


def test_the_least_recently_used_slot_is_evicted() -> None:
    table = SlotTable(3, 16)
    for first in (1, 4, 7):
        remember(table, ids(first, first + 1, first + 2))
    remember(table, ids(1, 2, 3, 3))
    assert table.place([ids(9, 9)])[0].slot == 1


def test_equal_prompts_of_a_wave_wait_for_the_first() -> None:
    table = SlotTable(4, 64)
    first, second, third = table.place([LONG, LONG, np.append(LONG[:30], 99).astype(np.int32)])
    assert first == Placement(0, 0, 0, 0)
    assert second == Placement(1, 0, 0, 39)
    assert third == Placement(2, 0, 0, 30)


def test_short_shared_prefixes_are_not_waited_for() -> None:
    table = SlotTable(2, 64)
    _, second = table.place([ids(1, 2, 3, 4), ids(1, 2, 3, 4)])
    assert second == Placement(1, 0, 0, 0)


def test_release_keeps_only_what_was_computed() -> None:
    table = SlotTable(1, 16)
    table.place([ids(1, 2, 3, 4)])
    table.advance(0, 2)
    table.release(0)
    assert table.common(ids(1, 2, 3, 4)).tolist() == [2]
    table.forget()
    assert table.common(ids(1, 2, 3, 4)).tolist() == [0]


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=3), max_size=8
    )
)
def test_placements_are_distinct_and_reuse_only_what_is_equal(waves: list[list[list[int]]]) -> None:
    table = SlotTable(3, 6)
    for wave in waves:
        prefixes = [ids(*prefix) for prefix in wave]
        before = table.tokens.copy()
        placements = table.place(prefixes)
        assert len({p.slot for p in placements}) == len(prefixes)
        for prefix, placement in zip(prefixes, placements, strict=True):
            held = before[placement.source] if placement.source == placement.slot else None
            assert placement.reused < len(prefix)
            if held is not None:
                assert held[: placement.reused].tolist() == prefix[: placement.reused].tolist()
        for placement, prefix in zip(placements, prefixes, strict=True):
            table.advance(placement.slot, len(prefix))
            table.release(placement.slot)

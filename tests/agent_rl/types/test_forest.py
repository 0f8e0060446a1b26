import numpy as np
import pytest

from agent_rl.types import CreditRow, Credits, Episode, Forest, Node, Span, Turn, merge


def node(id: str, parent: str | None, at: int, kind: str, *tokens: int) -> Node:
    return Node(id=id, parent=parent, at=at, kind=kind, token_ids=np.array(tokens, np.int32))  # type: ignore[arg-type]


def small() -> Forest:
    nodes = [
        node("r", None, 0, "prompt", 1, 2, 3),
        node("a", "r", 3, "action", 4, 5, 6),
        node("o", "a", 3, "observation", 7),
        node("b", "o", 1, "action", 8),
        node("c", "a", 2, "action", 9, 10),  # branches inside the action of a
    ]
    turns = [Turn(id="t0", action="a", observation="o"), Turn(id="t1", action="b"), Turn(id="t2", action="c")]
    episodes = (
        Episode(id="e0", task_id="t", group_id="g", sample=0, turns=("t0", "t1"), leaves=("b",)),
        Episode(id="e1", task_id="t", group_id="g", sample=1, turns=("t2",), leaves=("c",)),
    )
    return Forest({n.id: n for n in nodes}, {t.id: t for t in turns}, episodes)


def test_path_is_what_the_engine_saw():
    forest = small()
    assert forest.tokens("b").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert forest.tokens("c").tolist() == [1, 2, 3, 4, 5, 9, 10]
    assert forest.path("c") == [Span("r", 0, 3), Span("a", 0, 2), Span("c", 0, 2)]


def test_actions_of_a_branch_inside_a_turn_include_the_shared_part():
    assert small().actions("c") == [Span("a", 0, 2), Span("c", 0, 2)]


def test_select_keeps_what_its_episodes_reach():
    part = small().select(["e1"])
    assert set(part.nodes) == {"r", "a", "c"}
    assert set(part.turns) == {"t2"}
    assert [e.id for e in part.episodes] == ["e1"]


def test_merge_is_a_union_and_refuses_two_episodes_under_one_id():
    forest = small()
    both = merge([forest.select(["e0"]), forest.select(["e1"])])
    assert set(both.nodes) == set(forest.nodes)
    other = Forest(forest.nodes, forest.turns, (Episode(id="e0", task_id="other", group_id="g", sample=0),))
    with pytest.raises(ValueError, match="'e0' names two episodes"):
        merge([forest, other])


def test_credits_drop_empty_spans_and_count_denominators():
    credits = Credits.of(
        [
            CreditRow("a", 0, 3, 1.0, 1.0, "e0", "b"),
            CreditRow("b", 0, 1, 1.0, 1.0, "e0", "b"),
            CreditRow("b", 1, 1, 1.0, 1.0, "e0", "b"),
            CreditRow("c", 0, 2, -1.0, 1.0, "e1", "c"),
        ]
    )
    assert len(credits) == 3
    assert credits.tokens == 6
    assert credits.sequences == 2
    assert credits.value_targets is None

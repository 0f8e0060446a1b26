"""Any forest, valid or not: storage keeps what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from agent_rl.types import CreditRow, Credits, Episode, Forest, Node, Turn
from envs.types import Fault, RewardComponent

numbers = st.floats() | st.integers(-5, 5).map(float)
words = st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words


@st.composite
def arrays(draw: Any, dtype: Any, length: int) -> Any:
    raw = draw(
        st.binary(min_size=length * np.dtype(dtype).itemsize, max_size=length * np.dtype(dtype).itemsize)
    )
    return np.frombuffer(raw, dtype)  # any bits: payloads of nan included


@st.composite
def nodes(draw: Any, id_: str) -> Node:
    length = draw(st.integers(0, 4))
    return Node(
        id=id_,
        parent=draw(st.none() | words),
        at=draw(st.integers(0, 9)),
        kind=draw(st.sampled_from(["prompt", "action", "observation"])),
        token_ids=draw(arrays(np.int32, length)),
        sampled_logprobs=draw(st.none() | arrays(np.float32, length)),
        versions=draw(st.none() | arrays(np.int32, length)),
        policy=draw(words),
        temperature=draw(st.floats(allow_nan=False)),
        entropies=draw(st.none() | arrays(np.float32, length) | arrays(np.float64, length)),
    )


rewards = st.lists(
    st.builds(
        RewardComponent,
        name=words,
        value=st.floats(allow_nan=False),
        weight=st.floats(allow_nan=False),
        scope=st.sampled_from(["turn", "episode"]),
        valid=st.booleans(),
    ),
    max_size=2,
).map(tuple)
faults = st.none() | st.builds(
    Fault,
    kind=st.sampled_from(["engine", "deadline"]),
    stage=st.sampled_from(["reset", "step"]),
    retryable=st.booleans(),
    detail=st.text(st.characters() | st.characters(categories=["Cs"]), max_size=5),
)
stops = st.none() | st.sampled_from(["submitted", "length", "fault"])
seconds = st.floats(0, 1e6)


@st.composite
def forests(draw: Any) -> Forest:
    made_nodes = [draw(nodes(f"n{i}")) for i in range(draw(st.integers(0, 4)))]
    made_turns = [
        Turn(
            id=f"t{i}",
            action=draw(words),
            observation=draw(st.none() | words),
            kind=draw(st.sampled_from(["env", "context"])),
            rewards=draw(rewards),
            state_key=draw(words),
            belief_key=draw(words),
            stop=draw(stops),
            queue_s=draw(seconds),
            run_s=draw(seconds),
            fault=draw(faults),
        )
        for i in range(draw(st.integers(0, 3)))
    ]
    made_episodes = [
        Episode(
            id=f"e{i}",
            task_id=draw(words),
            group_id=draw(words),
            sample=draw(st.integers(0, 9)),
            purpose=draw(st.sampled_from(["train", "value", "eval"])),
            turns=draw(st.lists(words, max_size=2).map(tuple)),
            leaves=draw(st.lists(words, max_size=2).map(tuple)),
            thread=draw(words),
            role=draw(words),
            rewards=draw(rewards),
            terminated=draw(st.booleans()),
            truncated=draw(st.booleans()),
            stop=draw(stops),
            fault=draw(faults),
            exclude_from_loss=draw(st.booleans()),
            exclude_from_baseline=draw(st.booleans()),
            branched_from=draw(st.none() | words),
            metadata=draw(st.dictionaries(words, scalars | st.lists(scalars, max_size=2), max_size=2)),
        )
        for i in range(draw(st.integers(0, 3)))
    ]
    return Forest({n.id: n for n in made_nodes}, {t.id: t for t in made_turns}, tuple(made_episodes))


credit_rows = st.lists(
    st.builds(
        CreditRow,
        node=words,
        start=st.integers(0, 3),
        end=st.integers(4, 9),
        advantage=numbers,
        weight=numbers,
        episode=words,
        chain=words,
        value_target=st.none() | st.floats(allow_nan=False),
    ),
    max_size=4,
).map(Credits.of)


def bits(array: Any) -> Any:
    """dtype and bytes of an array, None for None: equal only when every bit is."""
    return None if array is None else (array.dtype.str, array.tobytes())


def contents(forest: Forest) -> Any:
    """Everything in a forest, comparable with ==."""
    names = ("id", "parent", "at", "kind", "policy", "temperature")
    arrays = ("token_ids", "sampled_logprobs", "versions", "entropies")
    rows = [
        (tuple(getattr(n, x) for x in names), tuple(bits(getattr(n, x)) for x in arrays))
        for n in forest.nodes.values()
    ]
    return list(forest.nodes), rows, list(forest.turns.items()), forest.episodes


def small_forest(n: int = 2, tokens: int = 3) -> Forest:
    """`n` episodes of one turn each below one prompt."""
    root = Node(id="root", parent=None, at=0, kind="prompt", token_ids=np.arange(tokens, dtype=np.int32))
    actions = [
        Node(
            id=f"a{i}",
            parent="root",
            at=tokens,
            kind="action",
            token_ids=np.arange(i + 1, dtype=np.int32),
            sampled_logprobs=np.full(i + 1, -0.5, np.float32),
            versions=np.zeros(i + 1, np.int32),
        )
        for i in range(n)
    ]
    turn = RewardComponent(name="format", value=0.25, scope="turn")
    turns = [Turn(id=f"t{i}", action=f"a{i}", rewards=(turn,), queue_s=1.0, run_s=0.5) for i in range(n)]
    solved = RewardComponent(name="solved", value=1.0)
    episodes = tuple(
        Episode(
            id=f"e{i}",
            task_id="task",
            group_id="g",
            sample=i,
            turns=(f"t{i}",),
            leaves=(f"a{i}",),
            metadata={"env": "sql-v1"},
            rewards=(solved,),
            terminated=True,
            stop="submitted",
        )
        for i in range(n)
    )
    return Forest({x.id: x for x in [root, *actions]}, {t.id: t for t in turns}, episodes)

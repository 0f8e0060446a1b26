"""SUPO's worked example 1 (splitting) without a model: sizes in, decisions out."""

import pytest

from agent_rl.context import AppendOnly, ContextConfig, Summarize, make
from agent_rl.types.seams import ContextView, Keep, Overflow, Rewrite

PROMPT = ({"role": "user", "content": "task"},)


def view(state: int, action: int, observation: int, rewrites: int = 0) -> ContextView:
    return ContextView(
        messages=PROMPT,  # type: ignore[arg-type]
        prompt=PROMPT,  # type: ignore[arg-type]
        state_tokens=state,
        action_tokens=action,
        observation_tokens=observation,
        rewrites=rewrites,
    )


def test_the_worked_example_splits_where_the_reference_says():
    # prompt 20, L = 80, S = 3, summary 12; (action, observation) sizes, the last without observation
    context = Summarize(ContextConfig(working_tokens=80, max_summaries=3), room=200)
    state, rewrites, kept, discarded, ends = 20, 0, [[]], [], []
    for turn, (action, observation) in enumerate([(10, 20), (10, 30), (10, 25), (10, 20), (5, 0)]):
        decision = context.observe(view(state, action, observation, rewrites))
        if isinstance(decision, Keep):
            state += action + observation
            kept[-1].append(turn)
        else:
            assert isinstance(decision, Rewrite)
            assert decision.discard_last
            discarded.append(turn)
            ends.append(state)
            state, rewrites = 20 + 12, rewrites + 1
            kept.append([])
    assert kept == [[0], [2], [4]]
    assert discarded == [1, 3]
    assert rewrites == 2
    # The reference's "length at end" adds instruction (5) and summary (12) to the first two, e.g. 50 and 67.
    assert ends == [50, 67]
    assert state == 37


def test_beyond_the_last_summary_the_episode_is_overlong():
    context = Summarize(ContextConfig(working_tokens=80, max_summaries=1), room=200)
    assert context.observe(view(60, 10, 30, rewrites=1)) == Overflow("max_summaries")


def test_exactly_the_working_length_is_too_much():
    context = Summarize(ContextConfig(working_tokens=80), room=200)
    assert isinstance(context.observe(view(40, 10, 30)), Rewrite)
    assert isinstance(context.observe(view(40, 10, 29)), Keep)


def test_the_default_is_95_percent_of_the_room_and_more_than_the_room_raises():
    assert Summarize(ContextConfig(), room=200).working_tokens == 190
    with pytest.raises(ValueError, match="300 > 200"):
        Summarize(ContextConfig(working_tokens=300), room=200)


def test_append_only_keeps_everything():
    context = make(ContextConfig(), 100)
    assert isinstance(context, AppendOnly)
    assert isinstance(context.observe(view(10**6, 10, 10)), Keep)

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.actions import read_action
from envs.policies import ScriptedPolicy, call, calls, say, texts
from envs.rewards import reward
from envs.snapshots import canonical_json, observation_hash
from envs.spaces import AssistantMessage, Messages
from envs.types import RewardComponent

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)
call_like = st.fixed_dictionaries(
    {},
    optional={
        "id": anything,
        "function": anything | st.fixed_dictionaries({}, optional={"name": anything, "arguments": anything}),
    },
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "content": anything,
            "tool_calls": anything | st.lists(call_like),
            "parse_errors": st.lists(st.text(st.characters())),
        },
    )
)
def test_whatever_a_model_sends_becomes_a_clean_message(fields: dict[str, Any]) -> None:
    message = read_action({"role": "assistant", **fields})  # type: ignore[typeddict-item]
    canonical_json(message).encode()
    _all_text(message)
    assert isinstance(message["content"], str)
    for each in message.get("tool_calls", []):
        assert isinstance(each["function"]["name"], str)
        assert isinstance(each["function"]["arguments"], dict)
    assert read_action(message) == message


def _all_text(value: Any) -> None:
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _all_text(key)
            _all_text(inner)
    elif isinstance(value, list):
        for inner in value:
            _all_text(inner)


@given(st.text(st.characters()))
def test_any_text_is_an_action(text: str) -> None:
    message = read_action(text)
    assert message["role"] == "assistant"
    _all_text(message)


def test_malformed_calls_become_parse_errors() -> None:
    good = call("read", index=1)
    message = read_action(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [7, {"function": {"name": "x", "arguments": "{}"}}, good["tool_calls"][0]],
        }  # type: ignore[typeddict-item, list-item]
    )
    assert message == {
        **good,
        "parse_errors": [
            "tool call 1 has no function name",
            "the arguments of 'x' must be an object, got str",
        ],
    }


def test_surrogates_nesting_and_huge_numbers_are_made_harmless() -> None:
    deep: Any = "core"
    for _ in range(200):
        deep = [deep]
    message = read_action(call("x", text="a\ud800b", deep=deep, big=10**6000, nan=float("nan"), ok=2**63))
    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert arguments["text"] == "a\ufffdb"
    assert arguments["big"] == "an integer of 19932 bits"
    assert (arguments["nan"], arguments["ok"]) == ("nan", 2**63)
    assert "core" not in canonical_json(arguments)


def test_the_callers_mistakes_raise() -> None:
    with pytest.raises(TypeError, match="assistant message or text, got int"):
        read_action(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got 'user'"):
        read_action({"role": "user", "content": "hi"})


def test_the_copy_is_private() -> None:
    given_arguments = {"rows": [1, 2]}
    message = read_action(calls(("x", given_arguments)))
    given_arguments["rows"].append(3)
    assert message["tool_calls"][0]["function"]["arguments"] == {"rows": [1, 2]}


# ------------------------------------------------------------------------- spaces, hashes, policies, rewards


@pytest.mark.parametrize("space", [Messages(), AssistantMessage()])
def test_spaces_are_equal_by_kind_and_sample_by_seed(space: Any) -> None:
    other = type(space)()
    assert space == other
    assert hash(space) == hash(other)
    assert space != type(space)(max_chars=3)
    space.seed(5)
    other.seed(5)
    samples = [space.sample() for _ in range(5)]
    assert samples == [other.sample() for _ in range(5)]
    assert all(sample in space for sample in samples)
    assert len({str(sample) for sample in samples}) == 5


def test_spaces_contain_messages() -> None:
    assert Messages() != AssistantMessage()
    for value in ([], [{"role": "tool", "content": "x"}]):
        assert value in Messages()
    for value in ("text", None, [3], [{"role": "king", "content": "x"}], [{"role": "user", "content": None}]):
        assert value not in Messages()
    assert "text" in AssistantMessage()
    assert say("hi") in AssistantMessage()
    assert {"role": "user", "content": "x"} not in AssistantMessage()


def test_hashes_depend_on_content_alone() -> None:
    assert observation_hash([{"role": "user", "content": "a"}]) == observation_hash(
        [{"content": "a", "role": "user"}]
    )
    assert observation_hash([{"role": "user", "content": "a"}]) != observation_hash(
        [{"role": "tool", "content": "a"}]
    )
    assert len(observation_hash([])) == 32
    assert canonical_json({"b": b"\xff", "a": {3, 1}}) == '{"a":[1,3],"b":"ff"}'


def test_scripted_policies_play_lists_and_generators() -> None:
    tools: Any = [{"name": "x", "description": "", "parameters": {}}]
    policy = ScriptedPolicy([call("x"), call("y")], done="bye")
    said = [policy.act([], tools) for _ in range(4)]
    assert said == [call("x"), call("y"), say("bye"), say("bye")]

    def script() -> Any:
        heard = yield call("x")
        yield say(heard)

    policy = ScriptedPolicy(script())
    policy.act([{"role": "user", "content": "go"}], tools)
    conversation: Any = [call("x"), {"role": "tool", "content": "a"}, {"role": "tool", "content": "b"}]
    assert policy.act(conversation, []) == say("Summary: b")
    assert policy.act(conversation, tools) == say("a\nb")
    assert texts(conversation) == "a\nb"


def test_rewards_in_short() -> None:
    assert reward(0.5).components == (RewardComponent(name="reward", value=0.5),)
    both = reward(solved=1, style=(0.5, 0.1))
    assert both.scalar == pytest.approx(1.05)
    assert reward(step=1.0, scope="turn").components[0].scope == "turn"
    with pytest.raises(ValueError, match="needs a value"):
        reward()

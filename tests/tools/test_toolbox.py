from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools import Tool, Toolbox, ToolError, ToolTimeout, tool
from tools.types import ToolCall


def call(name: str, **arguments: Any) -> ToolCall:
    return {"id": "call_7", "type": "function", "function": {"name": name, "arguments": arguments}}


@tool
def echo(text: str) -> str:
    """Echo."""
    return text


@tool
def fail(kind: str) -> None:
    """Fail."""
    if kind == "model":
        raise ToolError("rule, value, form")
    if kind == "environment":
        raise KeyError("a bug")


@tool
def rows(n: int) -> list[dict[str, Any]]:
    """Rows."""
    return [{"i": i, "ü": None} for i in range(n)]


BOX = Toolbox([echo, fail, Tool.of(rows)])


def test_a_call_is_answered_by_a_message() -> None:
    assert BOX.call(call("echo", text="hi")) == {
        "role": "tool",
        "content": "hi",
        "tool_call_id": "call_7",
        "name": "echo",
    }
    assert BOX.call(call("rows", n=1))["content"] == '[{"i": 0, "ü": null}]'
    assert BOX.call(call("fail", kind="no"))["content"] == "ok"
    assert [s["name"] for s in BOX.schemas] == ["echo", "fail", "rows"]


def test_the_models_mistakes_are_observations() -> None:
    assert BOX.call(call("ehco", text="hi"))["content"] == (
        "error: no tool is named \"ehco\". Did you mean 'echo'? Tools: echo, fail, rows"
    )
    assert BOX.call(call("echo"))["content"] == (
        "error: argument 'text' is required and missing. Valid form: echo(text: str)"
    )
    assert BOX.call(call("fail", kind="model"))["content"] == "error: rule, value, form"
    listed: Any = {"id": "c", "type": "function", "function": {"name": "echo", "arguments": [1]}}
    assert BOX.call(listed)["content"] == "error: arguments must be an object, got [1]"


def test_a_bug_of_the_environment_passes_through() -> None:
    with pytest.raises(KeyError, match="a bug"):
        BOX.call(call("fail", kind="environment"))


def test_a_tool_that_outlasts_its_limit_is_interrupted() -> None:
    released = threading.Event()
    interrupted: list[str] = []

    @tool(timeout_s=0.05)
    def hang() -> None:
        """Hang."""
        released.wait(10)

    def interrupt() -> None:
        interrupted.append(threading.current_thread().name)
        released.set()

    with pytest.raises(ToolTimeout, match=r"'hang' did not return within 0\.05 s") as caught:
        Toolbox([hang], on_timeout=interrupt).call(call("hang"))
    assert isinstance(caught.value, OSError)
    assert interrupted == [threading.current_thread().name]


def test_without_a_limit_the_tool_runs_in_the_callers_thread() -> None:
    @tool
    def where() -> str:
        """Where."""
        return threading.current_thread().name

    assert Toolbox([where], timeout_s=None).call(call("where"))["content"] == threading.current_thread().name
    assert Toolbox([where]).call(call("where"))["content"] == "tool-where"


def test_clipping_keeps_head_and_tail() -> None:
    box = Toolbox([echo], max_output_chars=200)
    text = "h" * 300 + "t" * 300
    content = box.call(call("echo", text=text))["content"]
    assert content == "h" * 54 + "\n[... 520 characters left out ...]\n" + "t" * 26
    assert len(box.clip("x" * 10_000_000)) <= 200
    assert box.clip("x" * 200) == "x" * 200


def test_read_more_pages_through_what_was_left_out() -> None:
    box = Toolbox([echo], max_output_chars=200, read_more=True)
    text = "".join(f"{i:03d}." for i in range(100))
    content = box.call(call("echo", text=text))["content"]
    assert 'read_more(handle="out1", offset=54) shows them' in content
    seen, offset = text[:54], 54
    while offset < len(text):
        page = box.call(call("read_more", handle="out1", offset=offset))["content"]
        body, note = page.rsplit("\n", 1)
        assert len(page) <= 200
        seen += body
        offset += len(body)
        assert note.startswith("[characters ")
    assert seen == text
    assert box.call(call("read_more", handle="out9"))["content"] == (
        'error: handle must name a stored output (out1), got "out9"'
    )
    assert "must be below 400" in box.call(call("read_more", handle="out1", offset=400))["content"]
    fork = Toolbox([echo], max_output_chars=200, read_more=True)
    fork.load_outputs(box.outputs())
    assert fork.call(call("read_more", handle="out1"))["content"].startswith("000.001.")
    assert "out2" in fork.clip("y" * 300)


def test_old_outputs_are_dropped() -> None:
    box = Toolbox([echo], max_output_chars=200, read_more=True)
    for _ in range(20):
        box.clip("x" * 300)
    assert list(box.outputs()) == [f"out{i}" for i in range(13, 21)]


def test_names_are_unique_and_limits_sane() -> None:
    with pytest.raises(ValueError, match="two tools are named 'echo'"):
        Toolbox([echo, echo])
    with pytest.raises(ValueError, match="at least 200"):
        Toolbox([echo], max_output_chars=10)


@settings(deadline=None)
@given(st.text(st.characters() | st.characters(categories=["Cs"])))
def test_any_output_can_be_encoded(text: str) -> None:
    @tool
    def say() -> str:
        """Say."""
        return text

    Toolbox([say], timeout_s=None).call(call("say"))["content"].encode()


def test_invalid_bytes_are_replaced() -> None:
    @tool
    def raw() -> bytes:
        """Raw."""
        return b"a\xffb"

    assert Toolbox([raw]).call(call("raw"))["content"] == "a\ufffdb"

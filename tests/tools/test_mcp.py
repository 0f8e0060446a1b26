"""Tools of a real MCP server in a process of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs pip install 'agent-rl[mcp]'")

from tools.errors import ToolError
from tools.mcp import McpError, McpServer, McpTools
from tools.toolbox import Toolbox

NOTES = (sys.executable, str(Path(__file__).with_name("mcp_notes.py")))


@pytest.fixture
def tools() -> Iterator[McpTools]:
    opened = McpTools(McpServer(command=NOTES))
    yield opened
    opened.close()


def test_tools_are_listed_checked_and_called(tools: McpTools) -> None:
    box = Toolbox(tools.tools)
    assert [schema["name"] for schema in box.schemas] == ["add", "die"]

    def call(**arguments: object) -> str:
        function = {"name": "add", "arguments": arguments}
        return box.call({"id": "1", "type": "function", "function": function})["content"]

    assert (call(text="a"), call(text="b")) == ("a", "a, b")
    assert call(text="bad") == "error: no bad notes"
    assert call(text=3).startswith("error: 3 is not of type 'string'")
    assert call(txt="c").startswith("error: ")
    assert call(text="x" * 51).startswith("error: ")
    assert call(text="c") == "a, b, c"  # what was refused here did not reach the server


def test_every_connection_starts_afresh_and_leaves_nothing() -> None:
    before = threading.active_count()
    for _ in range(2):
        opened = McpTools(McpServer(command=NOTES))
        assert opened.call("add", {"text": "a"}) == "a"
        opened.close()
        opened.close()
    assert threading.active_count() == before


def test_a_server_that_dies_is_no_mistake_of_the_models(tools: McpTools) -> None:
    with pytest.raises(McpError, match="the MCP server"):
        tools.call("die", {})
    with pytest.raises(McpError):
        tools.call("add", {"text": "a"})


def test_a_server_that_cannot_be_started_is_told() -> None:
    with pytest.raises(McpError, match="no-such-program"):
        McpTools(McpServer(command=("/no-such-program",)))


def test_a_server_has_one_place() -> None:
    with pytest.raises(ValueError, match="a command or a url"):
        McpServer()
    with pytest.raises(ValueError, match="a command or a url"):
        McpServer(command=("a",), url="http://127.0.0.1:1")


def test_the_harness_environment_is_not_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HARNESS", "x")
    script = tmp_path / "env.py"
    script.write_text(
        "import os, runpy\n"
        f"open({str(tmp_path / 'seen')!r}, 'w').write(' '.join(os.environ))\n"
        f"runpy.run_path({NOTES[1]!r}, run_name='__main__')\n"
    )
    McpTools(McpServer(command=(sys.executable, str(script)), env={"MINE": "1"})).close()
    seen = (tmp_path / "seen").read_text().split()
    assert "MINE" in seen
    assert "SECRET_OF_THE_HARNESS" not in seen


def test_errors_are_tool_errors(tools: McpTools) -> None:
    with pytest.raises(ToolError, match="no bad notes"):
        tools.call("add", {"text": "bad"})

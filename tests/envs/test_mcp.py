"""MCP in environments: a server's tools in an episode, and an episode's tools as a server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("mcp", reason="needs pip install 'agent-rl[mcp]'")

from envs.errors import UnforkableError
from envs.policies import call
from envs.types import FaultError
from tests.envs.toys.sums import Sums
from tests.tools.test_mcp import NOTES
from tools.mcp import McpServer

ROOT = Path(__file__).resolve().parents[2]


class Noted(Sums):
    """Sums with a server whose notes live in its process."""

    id = "noted-v1"
    mcp: ClassVar[tuple[McpServer, ...]] = (McpServer(command=NOTES, replayable=True),)


class Fixed(Noted):
    id = "fixed-v1"
    mcp: ClassVar[tuple[McpServer, ...]] = (McpServer(command=NOTES),)


def said(env: Sums, text: str) -> str:
    return str(env.step(call("add", text=text)).observation[0]["content"])


def test_a_replayable_server_forks_by_replay() -> None:
    (task,) = Sums.tasks("test", 1)
    env = Noted()
    env.reset(options={"task": task})
    assert "add" in [tool["name"] for tool in env.tools]
    assert said(env, "a") == "a"
    snapshot = env.snapshot()
    other = env.restore(snapshot)
    assert (said(other, "b"), said(env, "c")) == ("a, b", "a, c")
    env.close()
    other.close()


def test_every_episode_has_a_server_of_its_own() -> None:
    (task,) = Sums.tasks("test", 1)
    env = Noted()
    for _ in range(2):
        env.reset(options={"task": task})
        assert said(env, "a") == "a"
    env.close()


def test_what_cannot_be_replayed_takes_no_snapshot() -> None:
    (task,) = Sums.tasks("test", 1)
    env = Fixed()
    env.reset(options={"task": task})
    with pytest.raises(UnforkableError, match="not declared replayable"):
        env.snapshot()
    env.close()


def test_a_branching_configuration_is_refused_at_the_start(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs pip install 'agent-rl[train]'")
    from agent_rl.build import build
    from agent_rl.config import ConfigError
    from tests.agent_rl.trainer.test_loop import config

    made = config(tmp_path / "run")
    env = made.env.model_copy(update={"id": "tests.envs.test_mcp:Fixed", "options": {}})
    branching = made.branching.model_copy(update={"name": "random_turn"})
    with pytest.raises(ConfigError, match="not declared replayable"):
        build(made.model_copy(update={"env": env, "branching": branching}))


def test_a_server_that_dies_is_a_fault() -> None:
    (task,) = Sums.tasks("test", 1)
    env = Noted()
    env.reset(options={"task": task})
    with pytest.raises(FaultError) as caught:
        env.step(call("die"))
    assert caught.value.fault.kind == "environment"
    env.close()


def test_an_episode_is_served_and_its_reward_stays_here(tmp_path: Path) -> None:
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    (task,) = Sums.tasks("test", 1)
    out = tmp_path / "result.json"
    arguments = ["-m", "agent_rl.cli", "serve", "mcp", "tests.envs.toys.sums:Sums", "--out", str(out)]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)

    async def play() -> tuple[list[str], str, list[Any]]:
        async with Client(server, read_timeout_seconds=30) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            results = [
                await client.call_tool("read", {"index": 9}),
                await client.call_tool("read", {"index": 0}),
                await client.call_tool("submit", {"text": task.answer}),
                await client.call_tool("read", {"index": 0}),
            ]
            return tools, str(client.instructions), results

    tools, instructions, results = asyncio.run(play())
    assert tools == ["read", "note", "submit"]
    assert task.prompt[0]["content"] in instructions
    texts = [result.content[0].text for result in results]
    assert [result.is_error for result in results] == [True, False, False, True]
    assert texts[1] == str(task.data["numbers"][0])
    assert texts[2].endswith("The episode is over.")
    assert json.loads(out.read_text()) == {"task": task.id, "reward": 1.1, "stop": "submitted"}
    assert not any("1.1" in text or "reward" in text for text in texts)

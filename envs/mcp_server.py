"""One episode of an environment as an MCP server: its tools for any client, its reward for none.

The task stands in the server's instructions. What the episode earned is given to `ended` on this side, once it is over
or the client has gone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from envs.base import Env
from envs.policies import call
from envs.types import Task
from tools.types import Message

OVER = "The episode is over."


class Episode:
    """A live episode behind a lock: one turn at a time, whoever calls.

    Args:
        env: closed by `close`.
        task: what it plays.
        ended: told reward and stop reason, once.
    """

    def __init__(self, env: Env, task: Task, ended: Callable[[float, str], None]) -> None:
        self._env, self._ended, self._lock = env, ended, threading.Lock()
        messages, _ = env.reset(seed=task.seed, options={"task": task})
        self.instructions = "\n\n".join(message["content"] for message in messages)
        self._reward, self._told = 0.0, False

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Name, description and JSON schema of each tool."""
        return [dict(tool) for tool in self._env.tools]

    def play(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Play one turn; gives what was shown, and whether it was a mistake.

        Raises:
            FaultError: something broke on this side.
        """
        with self._lock:
            if self._told:
                return OVER, True
            step = self._env.step(call(name, **arguments))
            self._reward += step.reward
            shown = _text(step.observation)
            if step.terminated or step.truncated:
                self._tell(str(step.info.get("stop", "")))
                shown = f"{shown}\n{OVER}" if shown else OVER
            return shown, shown.startswith("error: ")

    def close(self) -> None:
        """End it; safe to call twice."""
        with self._lock:
            self._tell("client gone")
            self._env.close()

    def _tell(self, stop: str) -> None:
        if not self._told:
            self._told = True
            self._ended(self._reward, stop)


def _text(messages: list[Message]) -> str:
    return "\n".join(message["content"] for message in messages)


def make_server(name: str, episode: Episode) -> Any:
    """The SDK's server over an episode.

    Raises:
        ModuleNotFoundError: the SDK is not installed.
    """
    import mcp_types as types
    from mcp.server.lowlevel import Server

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        del context, parameters
        tools = [
            types.Tool(
                name=tool["name"], description=tool["description"], input_schema=dict(tool["parameters"])
            )
            for tool in episode.tools
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        del context
        shown, mistake = await asyncio.to_thread(episode.play, parameters.name, parameters.arguments or {})
        return types.CallToolResult(content=[types.TextContent(text=shown)], is_error=mistake)

    return Server(name, instructions=episode.instructions, on_list_tools=list_tools, on_call_tool=call_tool)


def serve(name: str, episode: Episode) -> None:
    """Serve over standard input and output until the client hangs up."""
    from mcp.server.stdio import stdio_server

    server = make_server(name, episode)

    async def run() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        asyncio.run(run())
    finally:
        episode.close()

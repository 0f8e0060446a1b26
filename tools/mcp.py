"""Tools of an MCP server (Model Context Protocol), through the official SDK, as tools of an environment.

A server is a program of the environment's author or a service: it is trusted as any tool is, and what it answers is
shown to the model. Whether its calls can be replayed is declared, because nobody can find out.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from tools import values
from tools.errors import ToolError
from tools.schema import Tool
from tools.signature import signature

INSTALL = "MCP needs its SDK: pip install 'agent-rl[mcp]'"
_START_S, _END_S = 30.0, 5.0
_T = TypeVar("_T")


class McpError(RuntimeError):
    """The server cannot be reached, or has gone: never the model's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """Where a server is, and whether its calls can be replayed.

    Raises:
        ValueError: not exactly one of command and url is given.
    """

    command: tuple[str, ...] = ()
    """A program and its arguments, started anew for every episode; it talks over its standard streams."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the program, beside a few such as PATH; nothing else of this process's environment is passed."""
    url: str = ""
    """Of a server that runs already, over streamable HTTP; its state is shared by all who use it."""
    replayable: bool = False
    """Whether a fresh start and the same calls lead to the same state and answers. Only then do episodes fork."""
    timeout_s: float = 30.0
    """Of one call."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError(
                "an MCP server has a command or a url, and not both: McpServer(command=('prog', '--stdio'))"
            )


@dataclass(frozen=True, slots=True)
class McpTool(Tool):
    """A tool whose arguments a JSON schema of the server's describes."""

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, checked against the schema.

        Raises:
            ToolError: an argument is wrong, missing or unknown.
        """
        import jsonschema

        given = dict(arguments)
        try:
            values.check(given)
            jsonschema.validate(given, dict(self.parameters))
        except (ToolError, jsonschema.ValidationError) as error:
            said = error.message if isinstance(error, jsonschema.ValidationError) else str(error)
            raise ToolError(f"{said[:300]}. Valid form: {signature(self.to_schema())}") from None
        return given


class McpTools:
    """An open connection to a server, and its tools; used from any thread.

    Raises:
        McpError: the server does not start or answer.
        ModuleNotFoundError: the SDK is not installed.
    """

    def __init__(self, server: McpServer) -> None:
        try:
            import mcp
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(INSTALL, name="mcp") from error
        del mcp
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._ready: Future[list[Any]] = Future()
        self._client: Any = None
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name="mcp", daemon=True)
        self._thread.start()
        try:
            listed = self._ready.result(_START_S)
        except FutureTimeoutError:
            self.close()
            raise McpError(f"the MCP server {self._name} did not answer within {_START_S:g} s") from None
        self.tools: tuple[Tool, ...] = tuple(self._tool(each) for each in listed)

    @property
    def _name(self) -> str:
        return self._server.url or self._server.command[0]

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool and give its text.

        Raises:
            ToolError: the server says that the call was wrong.
            McpError: the server has gone.
        """
        limit = self._server.timeout_s
        result = self._wait(self._client.call_tool(name, dict(arguments), read_timeout_seconds=limit), limit)
        parts = [getattr(part, "text", f"({part.type} that is not shown)") for part in result.content]
        text = "\n".join(values.well_formed(part) for part in parts)
        if result.is_error:
            raise ToolError(text or "the tool failed")
        return text

    def close(self) -> None:
        """Hang up and end a program that was started; safe to call twice."""
        if self._loop.is_running():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(_END_S)

    def _wait(self, work: Coroutine[Any, Any, _T], limit_s: float) -> _T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(limit_s + _END_S)
        except Exception as error:
            raise McpError(f"the MCP server {self._name}: {type(error).__name__}: {error}"[:500]) from error

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            if not self._ready.done():
                self._ready.set_exception(
                    McpError(
                        f"the MCP server {self._name} cannot be used: {type(error).__name__}: {error}"[:500]
                    )
                )
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        from mcp.client import Client
        from mcp.client.stdio import StdioServerParameters

        server = self._server
        where: Any = server.url
        if server.command:
            program, *arguments = server.command
            where = StdioServerParameters(command=program, args=arguments, env=dict(server.env))
        async with Client(where, read_timeout_seconds=server.timeout_s) as client:
            self._client = client
            found: list[Any] = []
            cursor: str | None = None
            while True:
                page = await client.list_tools(cursor=cursor)
                found += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
            self._ready.set_result(found)
            await self._over.wait()

    def _tool(self, listed: Any) -> Tool:
        name = str(listed.name)

        def run(**arguments: Any) -> str:
            return self.call(name, arguments)

        return McpTool(
            name=name,
            description=" ".join(str(listed.description or name).split())[:1000],
            parameters=listed.input_schema,
            function=run,
            model=BaseModel,
        )

"""A small MCP server for tests: notes in memory, over standard streams."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

NOTES: list[str] = []
ADD = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 50}},
    "required": ["text"],
    "additionalProperties": False,
}


async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
    del context, parameters
    tools = [
        types.Tool(name="add", description="Add a note.", input_schema=ADD),
        types.Tool(name="die", description="End the server.", input_schema={"type": "object"}),
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
    del context
    if parameters.name == "die":
        os._exit(3)
    text = (parameters.arguments or {})["text"]
    if text == "bad":
        return types.CallToolResult(content=[types.TextContent(text="no bad notes")], is_error=True)
    NOTES.append(text)
    return types.CallToolResult(content=[types.TextContent(text=", ".join(NOTES))])


async def main() -> None:
    server = Server("notes", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())

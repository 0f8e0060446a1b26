"""What an agent may call: tools, their schemas, and the ways a model writes a call."""

from tools.errors import ToolError, ToolTimeout
from tools.schema import Tool, tool, tools_of
from tools.toolbox import Toolbox
from tools.types import Message, ToolCall, ToolFunction, ToolResult, ToolSchema

__all__ = [
    "Message",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolFunction",
    "ToolResult",
    "ToolSchema",
    "ToolTimeout",
    "Toolbox",
    "tool",
    "tools_of",
]

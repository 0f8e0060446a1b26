"""What the agent's tools do in the agent's sandbox, and how a result reads.

Every call but those of the Python session (`session.py`) is a process tree of its own: when it returns, nothing that
it started is alive, so that files are the only state and a copy of the files is a snapshot of the world.
"""

from __future__ import annotations

from collections.abc import Mapping

from envs.code.grading import SPEC_ENV
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.types import ExecResult, Limits, SandboxSpec
from tools.errors import ToolError

TIMEOUT_S = 10.0
MAX_FILE_BYTES = 256 * 1024
MAX_COMMAND_BYTES = 100_000
_LIMITS = {
    "timeout": f"stopped after {TIMEOUT_S:g} s",
    "idle_timeout": "stopped: no output for too long",
    "oom": "stopped: out of memory",
    "pids": "stopped: too many processes",
    "output": "stopped: too much output",
    "killed": "stopped by a signal from outside",
}


def agent_spec(files: Mapping[str, str] | None = None) -> SandboxSpec:
    """The agent's sandbox: a workspace with the task's files."""
    encoded = {path: text.encode() for path, text in (files or {}).items()}
    return SandboxSpec(limits=Limits(timeout_s=TIMEOUT_S), files=encoded, env=SPEC_ENV)


def run_shell(sandbox: Sandbox, command: str) -> str:
    """Run a command by bash; directory and variables do not survive the call.

    Raises:
        ToolError: the command does not fit in an argument.
    """
    size = len(_utf8(command))
    if size > MAX_COMMAND_BYTES or "\0" in command:
        raise ToolError(
            f"a command has at most {MAX_COMMAND_BYTES} bytes and no NUL character, got {size} bytes; "
            "write a script with write_file and run that"
        )
    return describe(sandbox.exec(["bash", "--norc", "--noprofile", "-c", command]))


def read_file(sandbox: Sandbox, path: str) -> str:
    """The text of a file in the workspace.

    Raises:
        ToolError: not a regular file beneath the workspace, or too large.
    """
    try:
        return sandbox.read(path, max_bytes=MAX_FILE_BYTES).decode("utf-8", "replace")
    except SandboxPathError as error:
        raise ToolError(str(error)) from error


def write_file(sandbox: Sandbox, path: str, content: str) -> str:
    """Write a text file in the workspace.

    Raises:
        ToolError: the path leaves the workspace, or there is no room.
    """
    data = _utf8(content)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"a file has at most {MAX_FILE_BYTES} bytes, got {len(data)}; write it in parts")
    try:
        sandbox.write(path, data)
    except SandboxPathError as error:
        raise ToolError(str(error)) from error
    return f"wrote {len(data)} bytes"


def edit_file(sandbox: Sandbox, path: str, old: str, new: str) -> str:
    """Replace the only occurrence of a text in a file of the workspace.

    Raises:
        ToolError: it does not occur exactly once, or the file cannot be read or written.
    """
    text = read_file(sandbox, path)
    found = text.count(old) if old else 0
    if found != 1:
        raise ToolError(
            f"the old text must occur exactly once in {path}, it occurs {found} times; give more of it"
        )
    return write_file(sandbox, path, text.replace(old, new))


def describe(result: ExecResult) -> str:
    """Output, then errors, then how it ended unless that was well.

    Raises:
        SandboxLost: the result says so.
    """
    if result.reason == "sandbox_lost":
        raise SandboxLost("the agent's sandbox was lost while a tool ran")
    parts = [result.stdout.text.rstrip("\n"), result.stderr.text.rstrip("\n")]
    if result.reason != "ok":
        parts.append(f"[{_LIMITS.get(result.reason, result.reason)}]")
    elif result.exit_code != 0:
        parts.append(f"[exit status {result.exit_code}]")
    return "\n".join(part for part in parts if part) or "(no output)"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

"""A Python session in the agent's sandbox: variables stay from one call to the next."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

from envs.code import session_driver
from envs.code.grading import PYTHON
from envs.code.tools import describe
from sandbox.base import Sandbox, Shell
from sandbox.errors import SandboxLost
from tools.errors import ToolError

_LOST = "the session ended, its variables are gone; the next call starts a new one"
_TOO_LONG = 100_000


class Session:
    """Runs pieces of source in one Python process behind a stateful shell.

    The shell starts the process as a coprocess and passes lines to and fro, so that deadline, output limit and
    whole-tree kill are those of the shell. A process that dies is started anew by the next call.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._shell: Shell | None = None

    def run(self, source: str) -> str:
        """What one piece printed; errors and limits in words, as the model reads them.

        Raises:
            ToolError: the source is too long.
            SandboxLost: the sandbox itself is gone.
        """
        if len(source) > _TOO_LONG:
            raise ToolError(f"a piece of code has at most {_TOO_LONG} characters, got {len(source)}")
        encoded = base64.b64encode(source.encode("utf-8", "surrogatepass")).decode()
        if self._shell is None:
            self._shell = self._sandbox.shell()
            started = self._shell.run(_START)
            if not started.ok:
                self.close()
                return describe(started)
        result = self._shell.run(f"_ask {encoded}")
        if result.reason == "sandbox_lost":
            raise SandboxLost("the agent's sandbox was lost while its session ran")
        if result.ok:
            return result.stdout.text.rstrip("\n") or "(no output)"
        self.close()
        why = "stopped after too long" if "timeout" in result.reason else f"stopped: {result.reason}"
        return f"[{_LOST}]" if result.reason == "ok" else f"[{why}; {_LOST}]"

    def close(self) -> None:
        """Kill the process and all that it started."""
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.close()


def _start() -> str:
    source = Path(session_driver.__file__).read_text(encoding="utf-8")
    python = shlex.join([*PYTHON, "-u", "-c", source])
    return (
        f"coproc SESSION {{ exec {python} 2>/dev/null; }}\n"
        '_ask() { builtin printf \'%s\\n\' "$1" >&"${SESSION[1]}" && IFS= read -r _ANSWER <&"${SESSION[0]}" '
        '&& builtin printf %s "$_ANSWER" | base64 -d; }'
    )


_START = _start()

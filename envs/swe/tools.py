"""What the agent's tools do in its sandbox, and how a result reads.

Every call is a process tree of its own: when it returns, nothing that it started is alive. The shell's directory and
variables are carried in a file of the workspace, so a copy of the files is the whole state.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envs.swe.kit import PYTHON, kit
from envs.swe.repository import HOME, KIT, REPO, files_of, import_paths, placed
from envs.types import Task
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.files import WORKSPACE
from sandbox.types import MIB, ExecResult, Limits, SandboxSpec
from tools.errors import ToolError

TIMEOUT_S, TESTS_TIMEOUT_S = 10.0, 20.0
MAX_FILE_BYTES = 1 << 20
MAX_COMMAND_BYTES = 100_000
MAX_LINES = 400
"""That `view` shows in one call."""
_LIMITS = {
    "timeout": "stopped: it took too long",
    "idle_timeout": "stopped: no output for too long",
    "oom": "stopped: out of memory",
    "pids": "stopped: too many processes",
    "disk": "the workspace is full",
    "output": "stopped: too much output",
    "killed": "stopped by a signal from outside",
}
_SHELL = r"""
state=/workspace/.shell
[ -f $state/variables ] && . $state/variables 2>/dev/null
{ [ -f $state/folder ] && cd -- "$(<$state/folder)"; } 2>/dev/null || cd /workspace/repo 2>/dev/null || cd /workspace
unset OLDPWD
_keep() { { [ -d $state ] || mkdir -p $state; declare -px >$state/variables; pwd >$state/folder; } 2>/dev/null; }
trap _keep EXIT
eval -- "$1"
"""
_SEARCH = r"""
set -o pipefail
grep -rnIE --exclude-dir=.git --exclude-dir=__pycache__ -e "$1" -- "$2" | LC_ALL=C sort -t: -k1,1 -k2,2n
"""
_LIST = r"""
find "$1" -maxdepth 2 -not -path '*/.*' -not -name __pycache__ -printf '%P%y\n' | LC_ALL=C sort | sed 's|d$|//|; s|.$||'
"""
_SECONDS = re.compile(r" in \d+\.\d+s( \(\d+:\d+:\d+\))?")


def agent_spec(task: Task, backend: str) -> SandboxSpec:
    """The agent's sandbox: the repository, and pytest where Python finds it."""
    paths = [f"{WORKSPACE}/{KIT}", *import_paths(task)]
    env = {
        "PYTHONPATH": ":".join(paths),
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "LC_ALL": "C.UTF-8",
    }
    limits = Limits(timeout_s=TIMEOUT_S, max_output_bytes=MIB)
    return SandboxSpec(limits=limits, files={**placed(files_of(task)), KIT: kit(backend)}, env=env)


def run_shell(box: Sandbox, command: str) -> str:
    """Run a command by bash in the directory and with the exported variables that the last one left.

    Raises:
        ToolError: the command does not fit in an argument.
    """
    _fits(command, "a command")
    return describe(box.exec(["/bin/bash", "--norc", "--noprofile", "-c", _SHELL, "bash", command]))


def view(box: Sandbox, path: str, first: int, last: int) -> str:
    """Numbered lines of a file, or the names in a folder.

    Raises:
        ToolError: neither a file nor a folder of the workspace.
    """
    try:
        text = read(box, path)
    except ToolError as error:
        if "is a folder" not in str(error):
            raise
        return _folder(box, path)
    lines = text.splitlines()
    until = last if last > 0 else first + MAX_LINES - 1
    if first < 1 or until < first or until - first >= MAX_LINES:
        raise ToolError(f"first is at least 1, last at least first, and at most {MAX_LINES} lines are shown")
    shown = [f"{number:>5}  {line}" for number, line in enumerate(lines, 1) if first <= number <= until]
    more = f"\n[{len(lines) - until} more lines]" if until < len(lines) else ""
    return ("\n".join(shown) or "(no lines)") + more


def search(box: Sandbox, pattern: str, path: str) -> str:
    """Lines that match an extended regular expression, as `file:line:text`.

    Raises:
        ToolError: the pattern is malformed, or the path lies outside the repository.
    """
    where = beneath(path)
    _fits(pattern, "a pattern")
    _fits(where, "a path")
    folder = "." if where == REPO else f"./{where.removeprefix(REPO + '/')}"
    done = box.exec(
        ["/bin/bash", "--norc", "--noprofile", "-c", _SEARCH, "bash", pattern, folder], cwd=_home(box)
    )
    if done.reason == "ok" and done.exit_code == 1:
        return "no line matches"
    return re.sub(r"^\./", "", describe(done), flags=re.MULTILINE)


def run_tests(box: Sandbox, path: str) -> str:
    """Run the repository's visible tests, or those of one file or node.

    Raises:
        ToolError: the path cannot be an argument.
    """
    _fits(path, "a path")
    if path.startswith("-"):
        raise ToolError(
            f"a path of tests is a file or a node id, such as tests/test_a.py::test_b, got {path!r:.100}"
        )
    argv = [PYTHON, "-B", "-s", "-S", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    done = box.exec([*argv, *([path] if path else [])], cwd=_home(box), timeout_s=TESTS_TIMEOUT_S)
    return _SECONDS.sub("", describe(done))


def read(box: Sandbox, path: str) -> str:
    """The text of a file of the repository.

    Raises:
        ToolError: not a regular file beneath the workspace, or too large.
    """
    try:
        return box.read(beneath(path), max_bytes=MAX_FILE_BYTES).decode("utf-8", "replace")
    except SandboxPathError as error:
        raise ToolError(_told(error)) from error


def write(box: Sandbox, path: str, text: str) -> None:
    """Write a text file of the repository.

    Raises:
        ToolError: the path leaves the workspace, or there is no room.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"a file has at most {MAX_FILE_BYTES} bytes, got {len(data)}")
    try:
        box.write(beneath(path), data)
    except SandboxPathError as error:
        raise ToolError(_told(error)) from error


def remove(box: Sandbox, path: str) -> None:
    """Delete a file."""
    box.exec(["/bin/rm", "-f", "--", f"{WORKSPACE}/{beneath(path)}"])


def beneath(path: str) -> str:
    """A path relative to the workspace; given relative to the repository, or beginning with `/workspace`."""
    if path == WORKSPACE or path.startswith(f"{WORKSPACE}/"):
        return path[len(WORKSPACE) + 1 :] or "."
    if path.startswith("/"):
        raise ToolError(f"{path!r:.200} lies outside {HOME}; give a path relative to it")
    inner = path.strip("/").removeprefix("./")
    return f"{REPO}/{inner}" if inner not in ("", ".") else REPO


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


def _folder(box: Sandbox, path: str) -> str:
    argv: Sequence[str] = [
        "/bin/bash",
        "--norc",
        "--noprofile",
        "-c",
        _LIST,
        "bash",
        f"{WORKSPACE}/{beneath(path)}",
    ]
    return describe(box.exec(argv))


def _home(box: Sandbox) -> str:
    """The repository as a working directory; the workspace where an agent put something else in its place."""
    return REPO if box.exec(["/usr/bin/test", "-d", HOME, "-a", "!", "-L", HOME]).ok else "."


def _fits(text: str, what: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_COMMAND_BYTES or "\0" in text or any("\ud800" <= mark <= "\udfff" for mark in text):
        raise ToolError(
            f"{what} has at most {MAX_COMMAND_BYTES} bytes of UTF-8 and no NUL character, got {size} bytes"
        )


def _told(error: SandboxPathError) -> str:
    """The message in the agent's terms: its paths are relative to the repository."""
    return str(error).replace(f"'{REPO}/", "'")

"""`code-v1`: an agent writes a function or a program in a sandbox and submits its source once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import sandbox as sandboxes
from envs.base import PolicySpec
from envs.code import policies, tools
from envs.code.grading import Verdict, grading_spec, judge
from envs.code.tasks import make_tasks
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from sandbox.base import Sandbox
from sandbox.errors import SandboxClosed, SandboxPathError
from sandbox.types import SandboxSpec
from tools import ToolError, tool

MAX_SUBMISSION_CHARS = 100_000
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Files:
    """The world at a snapshot: a fork of the agent's sandbox in which nothing ever runs."""

    frozen: Sandbox | None
    """None when no tool had opened a sandbox yet."""

    def release(self) -> None:
        if self.frozen is not None:
            self.frozen.close()


class CodeEnv(ToolEnv):
    """Write Python that passes hidden inputs.

    The agent's sandbox opens with the first tool call that needs it. Files are the only state of the world,
    so snapshots are copies of the files. Grading runs the submitted source in a sandbox of its own; nothing
    of the agent's sandbox reaches it.
    """

    id: ClassVar[str] = "code-v1"
    max_turns = 16
    determinism = "exact"

    def __init__(self, *, backend: str = "bubblewrap", **base: Any) -> None:
        """Make an environment whose sandboxes come from `backend`; `base` goes to `Env`."""
        super().__init__(**base)
        self.backend = backend
        self.verdict: Verdict | None = None
        """How the last submission did, once graded; for people, never shown to a model."""
        self._submission: str | None = None
        self._agent: Sandbox | None = None
        self._open: list[Sandbox] = []
        self._lock = threading.Lock()
        self._standing = False

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """Tasks of a split; options `level`, `form`, `source`, `path` as in `envs.code.tasks.make_tasks`."""
        return make_tasks(split, n, seed, **options)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Gold, sloppy, no-op and the attacks."""
        return policies.POLICIES

    # ------------------------------------------------------------------------------------------- tools

    @tool
    def python(self, code: str) -> str:
        """Run Python code in a new process; print what you want to see. Files in the workspace stay.

        Args:
            code: the whole source to run.
        """
        return self._live(tools.run_python(self._sandbox(), code))

    @tool
    def shell(self, command: str) -> str:
        """Run a bash command in the workspace; each call is a new shell.

        Args:
            command: such as "ls" or "python3 solution.py < input.txt".
        """
        return self._live(tools.run_shell(self._sandbox(), command))

    @tool
    def read_file(self, path: str) -> str:
        """Read a text file of the workspace.

        Args:
            path: relative to the workspace.
        """
        return tools.read_file(self._sandbox(), path)

    @tool
    def write_file(self, path: str, content: str) -> str:
        """Write a text file in the workspace, folders included.

        Args:
            path: relative to the workspace.
            content: the whole text.
        """
        return tools.write_file(self._sandbox(), path, content)

    @tool
    def submit(self, code: str) -> str:
        """Hand in the final answer and end the episode. Only the source given here is judged.

        Args:
            code: the whole source of the function or program.
        """
        if len(code) > MAX_SUBMISSION_CHARS:
            raise ToolError(f"a submission has at most {MAX_SUBMISSION_CHARS} characters, got {len(code)}")
        self._submission = code
        self.finish()
        return "submitted"

    # --------------------------------------------------------------------------------------- the episode

    def setup(self, task: Task) -> None:
        """Nothing is started here: sandboxes open when they are needed."""
        self._submission, self.verdict, self._standing = None, None, True

    def grade(self) -> Reward:
        """Judge the submission in a fresh sandbox; without one the reward is 0."""
        if self._submission is None or not self._submission.strip():
            self.verdict = Verdict(passed=0, total=0, reason="nothing was submitted")
            return self.verdict.reward
        self._shut()
        with self._opened(grading_spec()) as grader:
            self.verdict = self._live(judge(grader, self.task, self._submission))
        return self.verdict.reward

    def teardown(self) -> None:
        """Close what is open."""
        self._standing = False
        self._shut()

    def interrupt(self) -> None:
        """Kill what runs in either sandbox."""
        super().interrupt()
        self._shut()

    def copy_state(self) -> Any:
        """The workspace as it is now; None (replay) where the model made one that cannot be copied."""
        try:
            return _Files(self._agent.fork() if self._agent is not None else None)
        except SandboxPathError:  # too deep, too full or unreadable: that must not become a fault
            return None

    def load_state(self, state: Any) -> None:
        """Continue from a copy of the workspace."""
        self._submission, self.verdict, self._standing = None, None, True
        if state.frozen is not None:
            self._agent = self._keep(state.frozen.fork())

    # --------------------------------------------------------------------------------------- sandboxes

    def _sandbox(self) -> Sandbox:
        agent = self._agent
        if agent is None:
            agent = self._agent = self._opened(tools.agent_spec())
        return agent

    def _opened(self, spec: SandboxSpec) -> Sandbox:
        return self._keep(sandboxes.create(spec, backend=self.backend))

    def _keep(self, opened: Sandbox) -> Sandbox:
        """Note a sandbox for closing; one that opened too late to be seen by an interrupt is closed at once."""
        with self._lock:
            self._open.append(opened)
        if self.interrupted or not self._standing:
            opened.close()
        return opened

    def _shut(self) -> None:
        """Close every sandbox; from any thread."""
        with self._lock:
            shut, self._open = self._open, []
        self._agent = None
        for opened in shut:
            opened.close()

    def _live(self, result: Result) -> Result:
        """A result, unless it was cut short from outside: then what looks like the program's doing is ours.

        Raises:
            SandboxClosed: the episode was interrupted or closed; leaves as a fault.
        """
        if self.interrupted or not self._standing:
            raise SandboxClosed("the episode was interrupted while a program ran")
        return result

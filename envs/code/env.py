"""`code-v1`: an agent writes a function or a program in a sandbox and submits its source once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import sandbox as sandboxes
from envs.base import PolicySpec
from envs.code import policies, tools
from envs.code.families import LEVELS
from envs.code.formats import FORMATS
from envs.code.grading import Pay, Verdict, grading_spec, judge, judge_examples
from envs.code.session import Session
from envs.code.tasks import make_tasks, split_keys
from envs.grading import admitted, judged
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
    examples_paid: bool

    def release(self) -> None:
        if self.frozen is not None:
            self.frozen.close()


class CodeEnv(ToolEnv):
    """Write Python that passes hidden inputs.

    The agent's sandbox opens with the first tool call that needs it. Until the Python session starts, files are
    the only state of the world and snapshots copy them; afterwards a restore replays all actions from the initial
    files. Grading runs the submitted source in a sandbox of its own; nothing else of the agent's sandbox
    reaches it.
    """

    id: ClassVar[str] = "code-v1"
    levels = tuple(range(len(LEVELS)))
    formats = FORMATS
    max_turns = 16
    read_more = True
    determinism = "exact"

    def __init__(
        self,
        *,
        backend: str = "bubblewrap",
        reward: Pay = "binary",
        examples_weight: float = 0.0,
        **base: Any,
    ) -> None:
        """Make an environment.

        Args:
            backend: where its sandboxes come from.
            reward: "binary" pays for passing every hidden input, "fraction" for the share of them.
            examples_weight: of the turn reward for passing the public examples, which is paid once. Examples can be
                learnt by heart, so it is 0 unless asked for.
            base: goes to `Env`.
        """
        super().__init__(**base)
        if reward not in ("binary", "fraction"):
            raise ValueError(f"reward is 'binary' or 'fraction', got {reward!r}")
        self.backend, self.pay, self.examples_weight = backend, reward, examples_weight
        self.verdict: Verdict | None = None
        """How the last submission did, once graded; for people, never shown to a model."""
        self._submission: str | None = None
        self._agent: Sandbox | None = None
        self._session: Session | None = None
        self._examples_paid = False
        self._open: list[Sandbox] = []
        self._lock = threading.Lock()
        self._standing = False

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """Tasks of a split; options `level`, `form`, `source`, `path` as in `envs.code.tasks.make_tasks`."""
        return make_tasks(split, n, seed, **options)

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """The problem's statement, whatever examples stand with it, and the hidden inputs."""
        return split_keys(task)

    @classmethod
    def trivial_policies(cls, tasks: Sequence[Task]) -> dict[str, PolicySpec]:
        """Constants, an echo of the input, and the most frequent results of these tasks."""
        return policies.trivial_policies(tasks)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Gold, sloppy, no-op and the attacks."""
        return policies.POLICIES

    # ------------------------------------------------------------------------------------------- tools

    @tool
    def python(self, code: str) -> str:
        """Run Python code in a session: variables stay from one call to the next. Print what you want to see.

        Args:
            code: a piece of source to run.
        """
        if self._session is None:
            self._session = Session(self._sandbox())
        return self._live(self._session.run(code))

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
    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once in a file of the workspace.

        Args:
            path: relative to the workspace.
            old: the text to replace, enough of it to be unique.
            new: what stands there afterwards.
        """
        return tools.edit_file(self._sandbox(), path, old, new)

    @tool
    def test(self, code: str = "") -> str:
        """Run a source on the examples of the task, in a place of its own.

        Args:
            code: the whole source; empty for the file that the task names.
        """
        source = self._source(code)
        with admitted(), self._opened(grading_spec()) as fresh:
            verdict, shown = self._live(judge_examples(fresh, self.task, source))
        if verdict.solved and not self._examples_paid:
            self._examples_paid = True
            self.turn_reward("examples", 1.0, weight=self.examples_weight)
        return shown

    @tool
    def submit(self, code: str = "") -> str:
        """Hand in the final answer and end the episode. Only this source is judged.

        Args:
            code: the whole source of the function or program; empty for the file that the task names.
        """
        self._submission = self._source(code)
        self.finish()
        return "submitted"

    def _source(self, code: str) -> str:
        named = self.task.data.get("file")
        if not code.strip() and named is not None:
            code = tools.read_file(self._sandbox(), named)
        if len(code) > MAX_SUBMISSION_CHARS:
            raise ToolError(f"a submission has at most {MAX_SUBMISSION_CHARS} characters, got {len(code)}")
        return code

    # --------------------------------------------------------------------------------------- the episode

    def setup(self, task: Task) -> None:
        """Nothing is started here: sandboxes open when they are needed."""
        self._submission, self.verdict, self._standing = None, None, True
        self._session, self._examples_paid = None, False

    def grade(self) -> Reward:
        """Judge the submission in a fresh sandbox; without one the reward is 0."""
        if self._submission is None or not self._submission.strip():
            self.verdict = Verdict(passed=0, total=0, reason="nothing was submitted")
            return self.verdict.reward(self.pay)
        self._shut()
        self.verdict = judged(self._judge, timed_out=lambda verdict: verdict.timed_out)
        return self.verdict.reward(self.pay)

    def _judge(self) -> Verdict:
        with self._opened(grading_spec()) as grader:
            return self._live(judge(grader, self.task, self._submission or ""))

    def teardown(self) -> None:
        """Close what is open."""
        self._standing = False
        self._shut()

    def interrupt(self) -> None:
        """Kill what runs in either sandbox."""
        super().interrupt()
        self._shut()

    def copy_state(self) -> Any:
        """The workspace as it is now; None (replay) once a session has variables, and where the model made a
        workspace that cannot be copied."""
        if self._session is not None:
            return None
        try:
            frozen = self._agent.fork() if self._agent is not None else None
            return _Files(frozen, self._examples_paid)
        except SandboxPathError:  # too deep, too full or unreadable: that must not become a fault
            return None

    def load_state(self, state: Any) -> None:
        """Continue from a copy of the workspace."""
        self._submission, self.verdict, self._standing = None, None, True
        self._session, self._examples_paid = None, state.examples_paid
        if state.frozen is not None:
            self._agent = self._keep(state.frozen.fork())

    # --------------------------------------------------------------------------------------- sandboxes

    def _sandbox(self) -> Sandbox:
        agent = self._agent
        if agent is None:
            agent = self._agent = self._opened(tools.agent_spec(self.task.data.get("files", {})))
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
        self._agent = None  # closing a sandbox ends its session too
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

"""`swe-v1`: an agent repairs a repository in a sandbox; two verdicts in fresh sandboxes must agree that it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from envs.base import PolicySpec
from envs.grading import judged
from envs.swe import edits, policies, tools
from envs.swe.evidence import Evidence
from envs.swe.generated.world import LEVELS
from envs.swe.grading import Answer, judge
from envs.swe.places import Places
from envs.swe.repository import files_of
from envs.swe.tasks import make_tasks
from envs.swe.workspace import PatchError, take_patch
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Step, Task
from sandbox.base import Sandbox
from sandbox.errors import SandboxPathError
from tools import tool
from tools.types import Message


@dataclass(frozen=True, slots=True)
class _World:
    """The world at a snapshot: a fork of the agent's sandbox in which nothing ever runs, and what `edit` can undo."""

    frozen: Sandbox | None
    """None when no tool had opened a sandbox yet."""
    history: edits.History

    def release(self) -> None:
        if self.frozen is not None:
            self.frozen.close()


class SweEnv(ToolEnv):
    """Repair a repository.

    The agent's sandbox opens with the first tool call that needs it; its files are the only state of the world, so
    snapshots are copies of them. `submit` takes the patch from outside and has it judged in fresh sandboxes.
    """

    id: ClassVar[str] = "swe-v1"
    levels: ClassVar[tuple[int, ...]] = tuple(range(len(LEVELS)))
    max_turns = 40
    determinism = "exact"
    read_more = True

    def __init__(self, *, backend: str = "bubblewrap", **base: Any) -> None:
        """Make an environment whose sandboxes come from `backend`; `base` goes to `Env`."""
        super().__init__(**base)
        self.backend = backend
        self.evidence: Evidence | None = None
        """What the reward rests on, once graded; also in the last step's `info`."""
        self._places = Places(backend)
        self._agent: Sandbox | None = None
        self._history = edits.EMPTY
        self._submitted = False

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """Generated tasks of a split; the option `level` as in `envs.swe.tasks.make_tasks`."""
        return make_tasks(split, n, seed, **options)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Gold, sloppy, no-op and the attacks."""
        return policies.POLICIES

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """No two splits share a package."""
        return {**super().split_keys(task), "package": str(task.data.get("package", ""))}

    # ------------------------------------------------------------------------------------------- tools

    @tool
    def shell(self, command: str) -> str:
        """Run a bash command. Directory and exported variables stay; programs in the background do not.

        Args:
            command: such as "ls" or "python3 -c 'import package'".
        """
        return self._places.live(tools.run_shell(self._sandbox(), command))

    @tool
    def view(self, path: str, first: int = 1, last: int = 0) -> str:
        """Show a file of the repository with line numbers, or what is in a folder.

        Args:
            path: relative to the repository, such as "README.md"; "." is the repository.
            first: the first line to show.
            last: the last one; 0 shows as many as fit.
        """
        return self._places.live(tools.view(self._sandbox(), path, first, last))

    @tool
    def edit(self, command: edits.Command, path: str, old: str = "", new: str = "", line: int = 0) -> str:
        """Change a file: replace a text that occurs once, insert lines, create a file, or undo the last edit of a file.

        Args:
            command: "replace" (old by new), "insert" (new after line), "create" (new is the content) or "undo".
            path: relative to the repository.
            old: the exact text to replace.
            new: what comes instead, or is added.
            line: insert after this line; 0 is the beginning of the file.
        """
        box = self._sandbox()
        told, self._history = edits.edit(box, self._history, command, path, old, new, line)
        return self._places.live(told)

    @tool
    def search(self, pattern: str, path: str = ".") -> str:
        """Find lines in the repository's files.

        Args:
            pattern: an extended regular expression.
            path: a file or folder to look in, relative to the repository.
        """
        return self._places.live(tools.search(self._sandbox(), pattern, path))

    @tool
    def run_tests(self, path: str = "") -> str:
        """Run the repository's own tests. The tests that judge the work are others, and hidden.

        Args:
            path: a file or node id, such as "tests/test_a.py"; empty runs all.
        """
        return self._places.live(tools.run_tests(self._sandbox(), path))

    @tool
    def submit(self) -> str:
        """Hand in the repository as it is now, and end the episode."""
        self._submitted = True
        self.finish()
        return "submitted"

    # --------------------------------------------------------------------------------------- the episode

    def step(self, action: Message | str) -> Step:
        """Play one message; the last step's `info` holds the evidence behind the reward."""
        made = super().step(action)
        if self.over and self.evidence is not None:
            made.info["evidence"] = self.evidence.to_json()
        return made

    def setup(self, task: Task) -> None:
        """Nothing is started here: sandboxes open when they are needed."""
        self._renew(edits.EMPTY)
        files_of(task)
        Answer.of(task)

    def grade(self) -> Reward:
        """Take the patch and judge it in fresh sandboxes; without `submit` the reward is 0."""
        self.evidence = self._judged() if self._submitted else Evidence(reason="nothing was submitted")
        return self.evidence.reward

    def teardown(self) -> None:
        """Close what is open."""
        self._places.stop()

    def interrupt(self) -> None:
        """Kill what runs in any sandbox."""
        super().interrupt()
        self._places.stop()

    def copy_state(self) -> Any:
        """The workspace as it is now; None (replay) where the model made one that cannot be copied."""
        try:
            return _World(self._agent.fork() if self._agent is not None else None, self._history)
        except SandboxPathError:  # too deep, too full or unreadable: that must not become a fault
            return None

    def load_state(self, state: Any) -> None:
        """Continue from a copy of the workspace."""
        self._renew(state.history)
        if state.frozen is not None:
            self._agent = self._places.keep(state.frozen.fork())

    def _renew(self, history: edits.History) -> None:
        self._places = Places(self.backend, lambda: self.interrupted)
        self._agent, self._history, self._submitted, self.evidence = None, history, False, None

    def _sandbox(self) -> Sandbox:
        if self._agent is None:
            self._agent = self._places.open(tools.agent_spec(self.task, self.backend))
        return self._agent

    def _judged(self) -> Evidence:
        original, trusted = files_of(self.task), Answer.of(self.task).trusted
        try:
            patch = self._places.live(take_patch(self._sandbox(), original, trusted))
        except PatchError as error:
            self._places.live(None)
            return Evidence(reason=str(error))
        self._places.shut()
        return judged(
            lambda: self._places.live(judge(self.task, patch, self._places.open, self.backend)),
            timed_out=lambda evidence: evidence.timed_out,
        )

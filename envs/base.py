"""The environment: a `gymnasium.Env` over messages that forks at any turn.

`Env` keeps the books (actions, observation hashes, turn limit, grading once) in one place, so that every
environment can be snapshotted by verified replay. Most people subclass `envs.tool_env.ToolEnv`; subclass
`Env` itself to write `_begin`, `_turn`, `_grade` and `_end` by hand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import gymnasium
import numpy as np

from envs.actions import read_action
from envs.errors import NotRunningError, TaskError, UnforkableError
from envs.lifecycle import Lifecycle
from envs.outcome import Outcome, copy_messages, read_options, to_step
from envs.policies import PolicySpec
from envs.registry import register_gymnasium
from envs.rewards import checked
from envs.snapshots import observation_hash, replay
from envs.sources import Sources
from envs.spaces import AssistantMessage, Messages
from envs.twins import AsyncTwins
from envs.types import FaultStage, Reward, Snapshot, Split, Step, Task
from tools.types import Message, ToolSchema

__all__ = ["Determinism", "Env", "Outcome", "PolicySpec"]

Determinism = Literal["exact", "reward", "none"]
"""What two episodes with equal task and actions share: observations and rewards, rewards only, nothing."""


class Env(AsyncTwins, Sources, gymnasium.Env[list[Message], Any]):
    """A world that a language model acts in by messages; plain synchronous code.

    The calls of one episode are serialised, but may come from changing threads; only `interrupt` and `close`
    may come while another call runs. Every exception of environment code leaves as a `FaultError`, after
    which the episode is dead: `reset` or `close`.
    """

    max_turns: int = 16
    determinism: Determinism = "exact"
    tools: tuple[ToolSchema, ...] = ()
    """What the model may call; fixed from one `reset` to the next."""

    _constructor: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember how this environment was made, so that `restore` can make another."""
        self = super().__new__(cls)
        self._constructor = (args, kwargs)
        return self

    def __init__(
        self,
        *,
        max_turns: int | None = None,
        split: Split = "train",
        task_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Make an environment; nothing runs before `reset`.

        `max_turns` overrides the class. `split` and `task_options` say where `reset` without a task draws
        from: `type(self).tasks(split, 1, seed, **task_options)`.
        """
        if max_turns is not None:
            self.max_turns = max_turns
        if self.max_turns < 1:
            raise ValueError(f"max_turns is at least 1, got {self.max_turns}")
        self.split: Split = split
        self.task_options = dict(task_options or {})
        self.observation_space = Messages()
        self.action_space = AssistantMessage()
        self.rng: np.random.Generator = np.random.default_rng(0)
        self._life = Lifecycle(self.name)
        self._task: Task | None = None
        self._seed: int | None = None
        self._actions: list[Message] = []
        self._hashes: list[str] = []

    # ------------------------------------------------------------------------------ written by subclasses

    def _begin(self, task: Task) -> list[Message]:
        """Build the world of `task`, set `self.tools`, return the first messages."""
        raise NotImplementedError(f"{type(self).__name__} must define _begin(task)")

    def _turn(self, action: Message) -> Outcome:
        """Play one action."""
        raise NotImplementedError(f"{type(self).__name__} must define _turn(action)")

    def _grade(self) -> Reward:
        """Judge the finished episode; called exactly once, after the last turn."""
        return Reward()

    def _end(self) -> None:
        """Take the world down; called once for every `_begin` or `_load`, whatever happened between."""

    def _copy(self) -> tuple[Any, Callable[[], None] | None] | None:
        """A copy of the live world and how to release it; None means that snapshots are replayed."""
        return None

    def _load(self, task: Task, state: Any) -> None:
        """Build the world from what `_copy` returned, in place of `_begin`; `state` stays usable."""
        raise NotImplementedError(f"{type(self).__name__} defines _copy and must define _load(task, state)")

    # ---------------------------------------------------------------------------------------- the episode

    @property
    def name(self) -> str:
        """The id, or the class's name where it has none."""
        return type(self).id or type(self).__name__

    @property
    def task(self) -> Task:
        """The current task."""
        if self._task is None:
            raise NotRunningError(f"{self.name} has no task yet: call reset first")
        return self._task

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self._life.phase == "over"

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called in this episode."""
        return self._life.interrupted

    @property
    def turns(self) -> int:
        """How many actions were played in this episode."""
        return len(self._actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode on `options["task"]`, else on a task drawn from `np_random`.

        The world is built from the task's own seed (`self.rng` is keyed by it); `seed` only decides which
        task is drawn. `options["split"]` overrides the split to draw from.

        Raises:
            FaultError: environment code failed.
            ValueError: an unknown option.
        """
        self._life.require_open()
        given, split = read_options(options or {}, self.split)
        super().reset(seed=seed)
        self._teardown("reset")
        self._life.enter()
        with self._life.boundary("reset"):
            self._task = given if given is not None else self._draw(split)
            self._seed, self._actions, self._hashes = seed, [], []
            self.rng = np.random.default_rng(self._task.seed)
            self._life.begin_world()
            messages = copy_messages(self._begin(self._task))
            self._hashes.append(observation_hash(messages))
        self._life.settle("live")
        return messages, {"task_id": self._task.id}

    def step(self, action: Message | str) -> Step:
        """Play one assistant message; text is parsed by the `hermes` format.

        `info` holds `reward` (named components), `stop` once the episode has ended, and `state_key` where
        the environment has one. The episode is graded once, in its last step.

        Raises:
            EpisodeOverError: the episode has ended.
            NotRunningError: there is no live episode.
            FaultError: environment code failed, or outlasted its deadline.
        """
        self._life.require_live("step")
        message = read_action(action)
        self._life.enter()
        self._actions.append(message)
        with self._life.boundary("step"):
            outcome = self._turn(copy.deepcopy(message))
            observation = copy_messages(outcome.observation)
            self._hashes.append(observation_hash(observation))
            reward = checked(outcome.reward)
        stop = outcome.stop
        if stop is None and self.turns >= self.max_turns:
            stop = "max_turns"
        if stop is not None:
            with self._life.boundary("grade"):
                reward = checked(reward + self._grade())
        self._life.settle("live" if stop is None else "over")
        return to_step(observation, reward, stop, outcome.state_key)

    # -------------------------------------------------------------------------------------------- forking

    @classmethod
    def unforkable(cls) -> str:
        """Why episodes cannot fork; empty where they can."""
        return ""

    def snapshot(self) -> Snapshot:
        """Freeze this point of the episode; the episode goes on. Release it when no longer needed.

        Raises:
            NotRunningError: there is no episode.
            UnforkableError: this environment's episodes cannot fork.
            FaultError: copying the world failed.
        """
        if why := self.unforkable():
            raise UnforkableError(f"{self.name} takes no snapshots: {why}")
        copied = None
        if not self.over:
            self._life.require_live("be snapshotted")
            with self._life.boundary("snapshot"):
                copied = self._copy()
        state, on_release = copied if copied is not None else (None, None)
        return Snapshot(
            env=self.name,
            task=self.task,
            seed=self._seed,
            actions=tuple(self._actions),  # nobody writes to an action once it is played
            observation_hashes=tuple(self._hashes),
            state=state,
            on_release=on_release,
        )

    def restore(self, snapshot: Snapshot) -> Self:
        """A new environment that stands where `snapshot` was taken; this one is not touched.

        Raises:
            ValueError: the snapshot is of another environment.
            FaultError: of kind `replay` when a replayed observation differs from the recorded one.
        """
        if snapshot.env != self.name:
            raise ValueError(f"a snapshot of {snapshot.env!r} cannot be restored by {self.name!r}")
        args, kwargs = self._constructor
        other = type(self)(*args, **kwargs)
        other.spec = self.spec
        try:
            if snapshot.state is None:
                replay(other, snapshot)
            else:
                other._load_snapshot(snapshot)
        except BaseException:
            other.close()
            raise
        return other

    def _load_snapshot(self, snapshot: Snapshot) -> None:
        self._task, self._seed = snapshot.task, snapshot.seed
        self._actions = list(snapshot.actions)
        self._hashes = list(snapshot.observation_hashes)
        self.rng = np.random.default_rng(snapshot.task.seed)
        self._life.begin_world()
        with self._life.boundary("restore"):
            self._load(snapshot.task, snapshot.state)
        self._life.settle("live")

    def fork(self) -> Self:
        """A second, independent environment at this point of the episode."""
        snapshot = self.snapshot()
        try:
            return self.restore(snapshot)
        finally:
            snapshot.release()

    def interrupt(self) -> None:
        """Stop what runs now; callable from any thread. The running call then fails with a `deadline` fault.

        Override it to kill the worker that `step` waits for, and call `super().interrupt()` first. An
        interrupted environment is only good for `close`.
        """
        self._life.interrupt()

    def close(self) -> None:
        """Take everything down; safe to call twice."""
        self._life.close()
        self._teardown("close")

    def _teardown(self, stage: FaultStage) -> None:
        if self._life.take_world():
            with self._life.boundary(stage):
                self._end()

    def _draw(self, split: Split) -> Task:
        seed = int(self.np_random.integers(2**31))
        drawn = type(self).tasks(split, 1, seed, **self.task_options)
        if not drawn:
            raise TaskError(f"{self.name} has no task in split {split!r}")
        return drawn[0]


register_gymnasium()  # `import agent_rl; gymnasium.make("agent_rl/sql-v1")`; see the function's docstring

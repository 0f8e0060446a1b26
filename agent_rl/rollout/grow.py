"""A group: one task grown to its budget of episodes, by whatever branching rule.

The rule names points of the forest; episodes continue from there, each in an environment of its own: a fresh one at
the root, elsewhere one restored from the snapshot that was taken after that turn. A point whose replay differs loses
its branch, is counted, and never faults the episode it came from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from agent_rl.rendering import Renderer
from agent_rl.rollout.config import RolloutConfig
from agent_rl.rollout.episode import EpisodeRun, Scene, described
from agent_rl.rollout.faults import boundary
from agent_rl.rollout.limits import EnvThreads, close_quietly, together
from agent_rl.rollout.lockstep import Lockstep
from agent_rl.rollout.policy import Actor, Key
from agent_rl.rollout.record import GroupRecord, Point
from agent_rl.types import Episode, Forest, Purpose
from agent_rl.types.node import Int32
from agent_rl.types.seams import Branch, Branching, ContextManager, TaskRequest
from envs.base import Env
from envs.snapshots import observation_hash
from envs.types import Fault, FaultError, Snapshot
from tools.types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What groups are played on; the same for a whole collection."""

    make_env: Callable[[], Env]
    actor: Callable[[TaskRequest, int], Actor]
    """Makes the actor of one sample; an engine's actor serves all."""
    renderer: Renderer
    context: ContextManager
    branching: Branching
    threads: EnvThreads
    config: RolloutConfig
    window: int
    live: asyncio.Semaphore | None
    """Bounds live episodes; None keeps all of them live (deterministic mode)."""
    lockstep: Lockstep | None = None


@dataclass(slots=True)
class Group:
    """One group while it grows."""

    stage: Stage
    request: TaskRequest
    group_id: str
    purpose: Purpose
    budget: int
    key: Key
    record: GroupRecord = field(init=False)
    started: int = 0
    """Episodes that were started, dropped branches included."""
    retried: int = 0
    dropped: int = 0
    on_episode: Callable[[Episode], None] | None = None

    def __post_init__(self) -> None:
        self.record = GroupRecord(self.group_id)

    async def grow(self) -> Forest:
        """Grow to the budget. Never raises for a fault: faulted episodes are in the forest, with theirs."""
        barrier = self.stage.lockstep
        if barrier is not None:
            barrier.enter()
        template: Env | None = None
        try:
            template, messages = await self._template()
            self._root(template, messages)
            rng = np.random.default_rng([abs(hash_key(k)) for k in self.key])
            left = self.budget
            while branches := self.stage.branching.next(self.record.forest(), left, rng):
                left -= await self._round(branches, template, tuple(messages))
        except FaultError as error:
            self._all_faulted(error)
        finally:
            try:
                await self._release(self.record.drop_points())
                if template is not None:
                    await close_quietly(self.stage.threads, template)
            finally:
                if barrier is not None:
                    barrier.leave()
        return self.record.forest()

    async def _template(self) -> tuple[Env, list[Message]]:
        """The environment that shows the first prompt and restores snapshots; retried like an episode."""
        retries = self.stage.config.retries
        while True:
            try:
                return await self._fresh()
            except FaultError as error:
                if not error.fault.retryable or retries == 0:
                    raise
            retries -= 1
            self.retried += 1

    async def _fresh(self) -> tuple[Env, list[Message]]:
        """A new environment at the start of the task, and its first messages."""
        task = self.request.task
        with boundary("reset"):
            env = self.stage.make_env()

        def reset() -> list[Message]:
            return env.reset(seed=task.seed, options={"task": task})[0]

        try:
            messages, _, _ = await self.stage.threads.call(env, "reset", reset)
        except BaseException:
            await close_quietly(self.stage.threads, env)
            raise
        return env, messages

    def _root(self, env: Env, messages: list[Message]) -> None:
        tokens = self.stage.renderer.prompt(messages, env.tools)
        if len(tokens) + self.stage.config.max_new_tokens > self.stage.window:
            raise FaultError(
                Fault(
                    kind="task",
                    stage="reset",
                    detail=f"the first prompt of task {self.request.task.id} has {len(tokens)} tokens; with "
                    f"{self.stage.config.max_new_tokens} for an action it does not fit the window of "
                    f"{self.stage.window}; raise engine.window or shorten the task",
                )
            )
        root = self.record.context(f"{self.group_id}:root", "prompt", tokens, None, 0)
        self.record.points[root.id] = Point(
            node=root.id,
            at=len(tokens),
            messages=tuple(messages),
            state_key=observation_hash(messages),
        )

    async def _release(self, snapshots: list[Snapshot]) -> None:
        for snapshot in snapshots:
            with contextlib.suppress(FaultError):  # what cannot be released must not stop the others
                await self.stage.threads.call(None, "close", snapshot.release)

    async def _round(self, branches: list[Branch], template: Env, prompt: tuple[Message, ...]) -> int:
        plan = [branch for branch in branches for _ in range(branch.n)]
        # Dropped branches use up their number: ids begin with it.
        first, self.started = self.started, self.started + len(plan)
        barrier = self.stage.lockstep
        remaining = len(plan)
        for _ in plan:
            if barrier is not None:
                barrier.enter()
        if barrier is not None:
            barrier.leave()

        async def play(sample: int, branch: Branch) -> None:
            nonlocal remaining
            try:
                episode = await self._episode(sample, branch, template, prompt)
                if episode is not None:
                    self.record.episodes[sample] = episode
                    if self.on_episode is not None:
                        self.on_episode(episode)
            finally:
                remaining -= 1
                if barrier is not None:
                    # The group takes its place back in the same breath, so that no wave leaves without it.
                    if remaining == 0:
                        barrier.enter()
                    barrier.leave()

        await together(play(first + i, branch) for i, branch in enumerate(plan))
        return len(plan)

    async def _episode(
        self, sample: int, branch: Branch, template: Env, prompt: tuple[Message, ...]
    ) -> Episode | None:
        """Play one episode, retried where that is safe; None for a branch that was dropped."""
        retries = self.stage.config.retries
        async with self.stage.live or contextlib.nullcontext():
            while True:
                try:
                    point, said = self.record.find(branch.node, branch.at)
                    if self._is_whole(said):
                        raise KeyError(branch.node)
                except KeyError:  # the rule names a turn that cannot be continued
                    self.dropped += 1
                    return None
                run = self._run(sample, branch, (point, said), template, prompt)
                episode, fault = await self._attempt(run, point, template)
                if fault is not None and fault.kind == "replay":
                    self.dropped += 1
                    return None
                if fault is None or not fault.retryable or retries == 0:
                    return episode
                retries -= 1
                self.retried += 1
                await self._release(self.record.forget(run.id))

    def _is_whole(self, said: Int32) -> bool:
        """Whether nothing can follow these tokens of an action: it ended, or has its full length."""
        stop_ids = self.stage.renderer.stop_ids
        return len(said) >= self.stage.config.max_new_tokens or (len(said) > 0 and int(said[-1]) in stop_ids)

    def _run(
        self,
        sample: int,
        branch: Branch,
        where: tuple[Point, Int32],
        template: Env,
        prompt: tuple[Message, ...],
    ) -> EpisodeRun:
        point, said = where
        return EpisodeRun(
            scene=self._scene(sample, prompt),
            record=self.record,
            env=template,
            sample=sample,
            point=replace(point, snapshot=None),
            said=said,
            branch=(branch.node, branch.at) if len(said) else None,
            branched_from=_owner(point),
            rewards=list(point.rewards),
        )

    async def _attempt(self, run: EpisodeRun, point: Point, template: Env) -> tuple[Episode, Fault | None]:
        env: Env | None = None
        try:
            env = await self._place(point, template)
            run.env = env
            return await run.run(), None
        except FaultError as error:
            return run.faulted(error), error.fault
        finally:
            if env is not None:
                await close_quietly(self.stage.threads, env)

    async def _place(self, point: Point, template: Env) -> Env:
        """An environment of the episode's own that stands at `point`."""
        snapshot = point.snapshot
        if snapshot is not None:
            restored, _, _ = await self.stage.threads.call(
                None, "restore", lambda: template.restore(snapshot), discard=Env.close
            )
            return restored
        env, messages = await self._fresh()
        if observation_hash(messages) != point.state_key:
            await close_quietly(self.stage.threads, env)
            detail = (
                f"two resets of task {self.request.task.id} gave different first messages, but the episodes of "
                "a group share one prompt; draw what varies from self.rng, which the task's seed keys"
            )
            raise FaultError(Fault(kind="environment", stage="reset", detail=detail))
        return env

    def _scene(self, sample: int, prompt: tuple[Message, ...]) -> Scene:
        stage = self.stage
        return Scene(
            task=self.request.task,
            prompt=prompt,
            group_id=self.group_id,
            purpose=self.purpose,
            actor=stage.actor(self.request, sample),
            renderer=stage.renderer,
            context=stage.context,
            threads=stage.threads,
            config=stage.config,
            window=stage.window,
            snapshots=stage.branching.snapshots,
            max_turns=self.request.max_turns,
            key=self.key,
        )

    def _all_faulted(self, error: FaultError) -> None:
        for sample in range(self.started, self.budget):
            episode = Episode(
                id=f"{self.group_id}.{sample}",
                task_id=self.request.task.id,
                group_id=self.group_id,
                sample=sample,
                purpose=self.purpose,
                truncated=True,
                stop="fault",
                fault=error.fault,
                exclude_from_loss=True,
                exclude_from_baseline=True,
                metadata=described(self.request.task),
            )
            self.record.episodes[sample] = episode
            if self.on_episode is not None:
                self.on_episode(episode)


def _owner(point: Point) -> str | None:
    """The episode that first reached a point: turn ids begin with it."""
    return point.turns[-1].rpartition(":t")[0] if point.turns else None


def hash_key(part: int | str) -> int:
    """A stable integer for one part of a key."""
    return part if isinstance(part, int) else int.from_bytes(part.encode()[:8].ljust(8, b"\0"), "big")

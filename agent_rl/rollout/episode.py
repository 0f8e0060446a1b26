"""The loop: act, step, observe, until something ends the episode. It records and never judges.

state ── act ──> action ── env.step ──> observation ── context.observe ──> keep | rewrite | overflow
  ^                                                                           │
  └───────────────────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from agent_rl.rendering import Renderer
from agent_rl.rollout.config import RolloutConfig
from agent_rl.rollout.limits import EnvThreads
from agent_rl.rollout.policy import Action, Actor, Key
from agent_rl.rollout.record import GroupRecord, Point, number_calls
from agent_rl.types import Episode, Purpose, Turn
from agent_rl.types.node import Int32
from agent_rl.types.seams import ContextManager, ContextView, Overflow, Rewrite
from envs.base import Env
from envs.snapshots import observation_hash
from envs.types import Fault, FaultError, RewardComponent, Snapshot, Step, StopReason, Task
from tools.types import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What all episodes of a group have in common."""

    task: Task
    prompt: tuple[Message, ...]
    group_id: str
    purpose: Purpose
    actor: Actor
    renderer: Renderer
    context: ContextManager
    threads: EnvThreads
    config: RolloutConfig
    window: int
    snapshots: bool
    max_turns: int | None
    key: Key


@dataclass(slots=True)
class EpisodeRun:
    """One live episode. `run` plays it to its end and returns what happened."""

    scene: Scene
    record: GroupRecord
    env: Env
    sample: int
    point: Point
    said: Int32
    branch: tuple[str, int] | None = None
    """Node and offset below which the first action hangs, when it continues a sibling's action."""
    branched_from: str | None = None
    rewards: list[RewardComponent] = field(default_factory=list)
    leaf: str | None = None
    nodes: int = 0

    @property
    def id(self) -> str:
        """Group and sample."""
        return f"{self.scene.group_id}.{self.sample}"

    async def run(self) -> Episode:
        """Play to the end.

        Raises:
            FaultError: something that is not the model's doing broke; what was recorded so far stays.
        """
        while True:
            if self.scene.max_turns is not None and len(self.point.turns) >= self.scene.max_turns:
                return self._end("max_turns", truncated=True)
            if self._state_tokens() > self.scene.actor.room(self.scene.window):
                return self._end("window", truncated=True)
            before = self.point
            action, node = await self._act("env")
            if action.cut is not None:
                self._turn(before, action, node, stop=action.cut)
                return self._end(action.cut, truncated=True)
            message = number_calls(action.message, before.calls)
            step, *waited = await self.scene.threads.call(self.env, "step", partial(self.env.step, message))
            ended = await self._observe(before, action, node, message, step, (waited[0], waited[1]))
            if ended is not None:
                return ended

    def _state_tokens(self) -> int:
        return self.record.length(self.point.node, self.point.at) + len(self.said)

    def _next_id(self) -> str:
        self.nodes += 1
        return f"{self.id}:{self.nodes - 1}"

    async def _act(self, kind: str) -> tuple[Action, str]:
        point, said = self.point, self.said
        state = np.concatenate([self.record.tokens(point.node, point.at), said]).astype(np.int32)
        action = await self.scene.actor.act(
            state,
            said,
            point.messages,
            self.env.tools,
            (*self.scene.key, self.sample, len(point.turns)),
            "env" if kind == "env" else "context",
        )
        # A branch inside a turn hangs its tokens below the part of the sibling's action that it shares.
        parent, at = self.branch if self.branch is not None else (point.node, point.at)
        node = self.record.action(self._next_id(), action, parent, at)
        self.said, self.branch = said[:0], None
        self.leaf = node.id
        return action, node.id

    def _turn(
        self,
        before: Point,
        action: Action,
        node: str,
        *,
        observation: str | None = None,
        step: Step | None = None,
        waited: tuple[float, float] = (0.0, 0.0),
        stop: StopReason | None = None,
        kind: str = "env",
    ) -> str:
        rewards = step.info["reward"].of("turn") if step is not None else ()
        turn = Turn(
            id=f"{self.id}:t{len(before.turns)}",
            action=node,
            observation=observation,
            kind="env" if kind == "env" else "context",
            rewards=rewards,
            state_key=before.state_key if kind == "env" else "",
            stop=stop,
            tool_calls=len(action.message.get("tool_calls", ())),
            tool_errors=0
            if step is None
            else tool_errors(step.observation) + len(action.message.get("parse_errors", ())),
            queue_s=action.queue_s + waited[0],
            run_s=action.run_s + waited[1],
        )
        self.record.turns[turn.id] = turn
        self.point = replace(before, turns=(*before.turns, turn.id))
        return turn.id

    async def _observe(
        self,
        before: Point,
        action: Action,
        node: str,
        message: Message,
        step: Step,
        waited: tuple[float, float],
    ) -> Episode | None:
        """Record what the world answered and go on, or end."""
        self.rewards += step.info["reward"].of("episode")
        if step.terminated or step.truncated:
            stop: StopReason = step.info.get("stop", "submitted")
            self._turn(before, action, node, step=step, waited=waited, stop=stop)
            return self._end(stop, truncated=step.truncated and not step.terminated)
        tokens = self.scene.renderer.observation(step.observation)
        observation = self.record.context(
            self._next_id(), "observation", tokens, node, len(self.record.nodes[node])
        )
        self._turn(before, action, node, observation=observation.id, step=step, waited=waited)
        after = Point(
            node=observation.id,
            at=len(tokens),
            messages=(*before.messages, message, *step.observation),
            state_key=step.info.get("state_key") or observation_hash(step.observation),
            turns=self.point.turns,
            leaves=before.leaves,
            rewrites=before.rewrites,
            calls=before.calls + len(message.get("tool_calls", ())),
        )
        decision = self.scene.context.observe(
            ContextView(
                messages=after.messages,
                prompt=self.scene.prompt,
                state_tokens=self.record.length(before.node, before.at),
                action_tokens=len(action.token_ids),
                observation_tokens=len(tokens),
                rewrites=before.rewrites,
            )
        )
        if isinstance(decision, Overflow):
            return self._end(decision.reason, truncated=True)
        if isinstance(decision, Rewrite):
            return await self._rewrite(decision, before, after)
        self.point = await self._with_snapshot(self._as_template(after))
        return None

    def _as_template(self, point: Point) -> Point:
        """The same point; with `history="template"` in a new chain where the template rewrites the past."""
        renderer = self.scene.renderer
        if renderer.history == "keep":
            return point
        tokens = renderer.prompt(point.messages, self.env.tools)
        if np.array_equal(tokens, self.record.tokens(point.node, point.at)):
            return point
        root = self.record.context(self._next_id(), "prompt", tokens, None, 0)
        leaves = (*point.leaves, self.leaf or point.node)
        self.leaf = root.id
        return replace(point, node=root.id, at=len(tokens), leaves=leaves)

    async def _with_snapshot(self, point: Point) -> Point:
        if not self.scene.snapshots or self.record.full:
            return point
        snapshot, _, _ = await self.scene.threads.call(
            self.env, "snapshot", self.env.snapshot, discard=Snapshot.release
        )
        self.record.points[point.node] = replace(point, snapshot=snapshot, rewards=tuple(self.rewards))
        return point

    async def _rewrite(self, decision: Rewrite, before: Point, after: Point) -> Episode | None:
        """Ask for a summary where the generation prompt stood, and open a new chain behind it."""
        renderer = self.scene.renderer
        base = before if decision.discard_last else after
        instruction = renderer.messages([decision.instruction])
        at = base.at - len(renderer.generation_prompt)
        asked = self.record.context(self._next_id(), "observation", instruction, base.node, at)
        turns = self.point.turns
        self.point = replace(
            base,
            node=asked.id,
            at=len(instruction),
            turns=turns,
            messages=(*base.messages, decision.instruction),
        )
        if self._state_tokens() > self.scene.actor.room(self.scene.window):
            self.leaf = asked.id
            return self._end("window", truncated=True)
        asking = self.point
        action, node = await self._act("context")
        # A summary that does not end is one too many.
        stop: StopReason | None = "max_summaries" if action.cut == "length" else action.cut
        self._turn(asking, action, node, kind="context", stop=stop)
        if stop is not None:
            return self._end(stop, truncated=True)
        summary: Message = {"role": decision.summary_role, "content": action.message["content"]}
        messages = (*decision.prefix, summary)
        tokens = renderer.prompt(messages, self.env.tools)
        root = self.record.context(self._next_id(), "prompt", tokens, None, 0)
        self.leaf = root.id
        self.point = Point(
            node=root.id,
            at=len(tokens),
            messages=messages,
            state_key=observation_hash(list(messages)),
            turns=self.point.turns,
            leaves=(*before.leaves, node),
            rewrites=before.rewrites + 1,
            calls=after.calls,
        )
        self.point = await self._with_snapshot(self.point)
        return None

    def _end(self, stop: StopReason, *, truncated: bool, fault: Fault | None = None) -> Episode:
        config, point = self.scene.config, self.point
        return Episode(
            id=self.id,
            task_id=self.scene.task.id,
            group_id=self.scene.group_id,
            sample=self.sample,
            purpose=self.scene.purpose,
            turns=point.turns,
            leaves=(*point.leaves, self.leaf or point.node),
            rewards=tuple(self.rewards),
            terminated=not truncated and fault is None,
            truncated=truncated,
            stop=stop,
            fault=fault,
            exclude_from_loss=stop in config.exclude_from_loss,
            exclude_from_baseline=stop in config.exclude_from_baseline,
            branched_from=self.branched_from,
            metadata=described(self.scene.task),
        )

    def faulted(self, error: FaultError) -> Episode:
        """The episode as far as it came, with its fault."""
        return replace(
            self._end("fault", truncated=True, fault=error.fault),
            exclude_from_loss=True,
            exclude_from_baseline=True,
        )


def described(task: Task) -> dict[str, str | int | float]:
    """What an episode says of its task to people and reports: the environment and plain metadata."""
    plain = {k: v for k, v in task.metadata.items() if isinstance(v, str | int | float)}
    return {**plain, "env": task.env}


ERROR_PREFIX = "error: "
"""Every tool answer that reports the model's mistake begins like this (`tools.toolbox`)."""


def tool_errors(messages: Sequence[Message]) -> int:
    """How many of these messages are tool answers that report a mistake."""
    return sum(m["role"] == "tool" and m["content"].startswith(ERROR_PREFIX) for m in messages)

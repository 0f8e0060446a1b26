"""Collects groups: many live episodes over one engine, with bounded threads and back-pressure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_rl.rendering import Renderer
from agent_rl.rollout.config import RolloutConfig
from agent_rl.rollout.grow import Group, Stage
from agent_rl.rollout.limits import EnvThreads, together
from agent_rl.rollout.lockstep import Lockstep
from agent_rl.rollout.policy import Actor, EngineActor, PolicyActor
from agent_rl.types import Episode, Forest, Purpose, merge
from agent_rl.types.seams import Branching, ContextManager, Engine, TaskRequest
from envs.base import Env
from envs.types import Policy, Task

Progress = Callable[[Episode], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A forest and what it cost."""

    forest: Forest
    seconds: float
    retried: int
    dropped_branches: int

    @classmethod
    def sum(cls, parts: Sequence[Collection]) -> Collection:
        """Several collections as one."""
        return cls(
            forest=merge(p.forest for p in parts),
            seconds=sum(p.seconds for p in parts),
            retried=sum(p.retried for p in parts),
            dropped_branches=sum(p.dropped_branches for p in parts),
        )

    def metrics(self) -> dict[str, float]:
        """Counts, shares and times of the collection, over its episodes."""
        episodes, nodes = self.forest.episodes, self.forest.nodes.values()
        sampled = sum(len(n) for n in nodes if n.sampled)
        turns = [self.forest.turns[t] for t in {t for e in episodes for t in e.turns}]
        n = max(len(episodes), 1)
        ok = [e for e in episodes if e.fault is None]
        spread = [
            len({round(self._return(e), 9) for e in g if not e.exclude_from_baseline}) > 1
            for g in self.forest.groups().values()
        ]
        return {
            "episodes": len(episodes),
            "success": sum(e.reward >= 1.0 - 1e-9 for e in ok) / max(len(ok), 1),
            "reward": sum(self._return(e) for e in ok) / max(len(ok), 1),
            "turns": sum(len(e.turns) for e in episodes) / n,
            "truncated": sum(e.truncated for e in ok) / max(len(ok), 1),
            "faults": sum(e.fault is not None for e in episodes),
            "retried": self.retried,
            "dropped_branches": self.dropped_branches,
            "zero_spread": 1.0 - sum(spread) / max(len(spread), 1),
            "sampled_tokens": sampled,
            "chains": sum(len(e.leaves) for e in episodes) / n,
            "queue_s": sum(t.queue_s for t in turns),
            "run_s": sum(t.run_s for t in turns),
            "seconds": self.seconds,
            "tokens_per_s": sampled / max(self.seconds, 1e-9),
        }

    def _return(self, episode: Episode) -> float:
        return episode.reward + sum(self.forest.turn_rewards(episode))


class Collector:
    """Plays groups of episodes with an engine, or writes down a policy's demonstrations."""

    def __init__(
        self,
        *,
        engine: Engine,
        renderer: Renderer,
        context: ContextManager,
        branching: Branching,
        config: RolloutConfig,
        make_env: Callable[[], Env],
        seed: int,
        deterministic: bool = False,
    ) -> None:
        self.engine = engine
        self.renderer = renderer
        self.context = context
        self.branching = branching
        self.config = config
        self.make_env = make_env
        self.seed = seed
        self.deterministic = deterministic
        self.threads = EnvThreads(config.env_threads, config.env_timeout_s)

    async def collect(
        self,
        requests: Sequence[TaskRequest],
        *,
        step: int,
        group_size: int,
        purpose: Purpose = "train",
        branching: Branching | None = None,
        temperature: float | None = None,
        progress: Progress | None = None,
    ) -> Collection:
        """Grow one group per request.

        Args:
            requests: tasks, each the root of a group.
            step: names the groups and keys the generators.
            group_size: episodes a group.
            purpose: `train`, `value` or `eval`.
            branching: another rule than the collector's, such as `at_root` for evaluation.
            temperature: another than the configuration's.
            progress: called after each episode.
        """
        barrier = Lockstep(self.engine) if self.deterministic else None
        actor = EngineActor(
            barrier if barrier is not None else self.engine,
            self.renderer,
            self.config,
            temperature=self.config.temperature if temperature is None else temperature,
        )
        return await self._collect(
            requests,
            lambda request, sample: actor,
            barrier,
            (step, group_size, purpose, branching or self.branching, progress),
        )

    async def demonstrate(
        self,
        requests: Sequence[TaskRequest],
        policy: Callable[[Task, int], Policy],
        *,
        step: int,
        branching: Branching,
        progress: Progress | None = None,
    ) -> Collection:
        """Write down one episode per request, played by a scripted policy, in the same forest."""

        def actor(request: TaskRequest, sample: int) -> Actor:
            return PolicyActor(policy(request.task, self.seed + sample), self.renderer)

        return await self._collect(requests, actor, None, (step, 1, "train", branching, progress))

    async def _collect(
        self,
        requests: Sequence[TaskRequest],
        actor: Callable[[TaskRequest, int], Actor],
        barrier: Lockstep | None,
        how: tuple[int, int, Purpose, Branching, Progress | None],
    ) -> Collection:
        step, group_size, purpose, branching, progress = how
        began = time.perf_counter()
        stage = Stage(
            make_env=self.make_env,
            actor=actor,
            renderer=self.renderer,
            context=self.context,
            branching=branching,
            threads=self.threads,
            config=self.config,
            window=self.engine.window,
            live=None if barrier is not None else asyncio.Semaphore(self.config.concurrency),
            lockstep=barrier,
        )
        groups = [
            Group(
                stage=stage,
                request=request,
                group_id=f"{purpose}{step}-{i}-{request.task.id}",
                purpose=purpose,
                budget=group_size,
                key=(self.seed, purpose, step, i, request.task.id),
                on_episode=progress,
            )
            for i, request in enumerate(requests)
        ]
        # A group opens environments of its own, so groups too are admitted a few at a time.
        gate = asyncio.Semaphore(len(groups) if barrier is not None else max(self.config.concurrency, 1))

        async def grow(group: Group) -> Forest:
            async with gate:
                return await group.grow()

        forests = await together(grow(g) for g in groups)
        return Collection(
            forest=merge(forests),
            seconds=time.perf_counter() - began,
            retried=sum(g.retried for g in groups),
            dropped_branches=sum(g.dropped for g in groups),
        )

"""The environment under check, and how a rule plays it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from envs.base import Env
from envs.policies import PolicyKind, PolicySpec
from envs.registry import EnvSpec
from envs.snapshots import canonical_json
from envs.types import Policy, Reward, Split, Step, Task
from sandbox.conformance.report import Broken, Unenforceable
from tools.types import Message, ToolSchema

MAX_TURNS_PLAYED = 1000


@dataclass(slots=True)
class Transcript:
    """One episode as it was seen from outside."""

    prompt: list[Message]
    tools: tuple[ToolSchema, ...]
    info: dict[str, Any] = field(default_factory=dict)
    actions: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Weighted sum of the valid episode components."""
        return sum(Reward(s.info["reward"].of("episode")).scalar for s in self.steps)

    @property
    def total(self) -> float:
        """Everything that was earned, turn rewards included."""
        return sum(s.reward for s in self.steps)

    def lines(self, *, rewards_only: bool = False) -> list[str]:
        """One canonical line for the prompt and for each turn: equal episodes have equal lines."""
        first = [] if rewards_only else [canonical_json([self.prompt, list(self.tools), self.info])]
        return first + [step_line(step, rewards_only=rewards_only) for step in self.steps]


def step_line(step: Step, *, rewards_only: bool = False) -> str:
    """One canonical line for a step."""
    earned = [[c.name, c.value, c.weight, c.scope, c.valid] for c in step.info["reward"].components]
    ending: list[Any] = [step.reward, step.terminated, step.truncated, step.info.get("stop"), earned]
    if rewards_only:
        return canonical_json(ending)
    return canonical_json([step.observation, step.info.get("state_key"), *ending])


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the rules are given. `own_tasks` is empty when the environment's `tasks()` is the source."""

    target: str
    spec: EnvSpec
    cls: type[Env]
    n: int
    seed: int
    resets: int
    own_tasks: tuple[Task, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments."""

    def make(self) -> Env:
        """A new environment."""
        return self.cls(**{**self.spec.kwargs, **self.options})

    @contextmanager
    def opened(self, task: Task | None = None) -> Iterator[Env]:
        """A new environment, reset on a task if one is given, closed at the end."""
        env = self.make()
        try:
            if task is not None:
                env.reset(seed=self.seed, options={"task": task})
            yield env
        finally:
            env.close()

    def tasks(self, split: Split | None = None, n: int | None = None) -> list[Task]:
        """Up to `n` tasks of a split, of any split by default; at least one.

        Raises:
            Unenforceable: the tasks that were handed in have none of this split.
            Broken: the environment's own source has none.
        """
        n = self.n if n is None else n
        if self.own_tasks:
            chosen = [t for t in self.own_tasks if split is None or t.split == split][:n]
            if not chosen:
                raise Unenforceable(f"no task of split {split!r} was given")
            return chosen
        env = self.make()
        try:
            drawn = type(env).tasks(split or "train", n, self.seed, **env.task_options)
        finally:
            env.close()
        if not drawn:
            raise Broken(f"tasks({split or 'train'!r}, {n}) returned no task")
        return drawn

    def policies(self, *kinds: PolicyKind) -> list[PolicySpec]:
        """The environment's own policies of these kinds."""
        return [p for p in self.cls.policies().values() if p.kind in kinds]

    def policy(self, kind: PolicyKind) -> PolicySpec:
        """The first policy of a kind.

        Raises:
            Broken: there is none.
        """
        found = self.policies(kind)
        if not found:
            raise Broken(f"policies() names no policy of kind {kind!r}")
        return found[0]

    def play(self, policy: PolicySpec, task: Task, *, seed: int = 0) -> Transcript:
        """Play one episode in an environment of its own."""
        env = self.make()
        try:
            return play(env, policy.make(task, seed), task, seed=self.seed)
        finally:
            env.close()


def play(
    env: Env,
    policy: Policy,
    task: Task,
    *,
    seed: int = 0,
    before_turn: Callable[[Env], None] | None = None,
) -> Transcript:
    """Play one episode from `reset` to its end; `before_turn` looks at the environment between turns.

    Raises:
        Broken: the episode does not end.
    """
    messages, info = env.reset(seed=seed, options={"task": task})
    seen = Transcript(prompt=messages, tools=env.tools, info=info)
    said: list[Message] = list(messages)
    while not env.over:
        if len(seen.steps) >= MAX_TURNS_PLAYED:
            raise Broken(f"the episode goes on after {MAX_TURNS_PLAYED} turns, max_turns is {env.max_turns}")
        if before_turn is not None:
            before_turn(env)
        action = policy.act(said, env.tools)
        step = env.step(action)
        seen.actions.append(action)
        seen.steps.append(step)
        said += [action, *step.observation]
    return seen


def first_difference(
    expected: Sequence[str], found: Sequence[str], names: Sequence[str] | None = None
) -> str:
    """Where two transcripts part, for people; empty when they are equal."""
    for number, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            where = names[number] if names is not None else f"line {number}"
            return f"{where} differs: ...{a[max(0, at - 30) : at + 50]}... against ...{b[max(0, at - 30) : at + 50]}..."
    if len(expected) != len(found):
        return f"{len(expected)} lines against {len(found)}"
    return ""

"""The nouns of an environment: task, reward, fault, step, snapshot, policy. All of them are frozen data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from tools.types import Message, ToolSchema

Split = Literal["train", "validation", "test"]
Scope = Literal["turn", "episode"]

StopReason = Literal[
    "submitted",
    "no_tool_call",
    "length",
    "window",
    "max_turns",
    "max_summaries",
    "deadline",
    "cancelled",
    "fault",
]
"""Why an episode ended. `length`: a turn hit its token limit; `window`: the next turn would not fit."""

FaultKind = Literal[
    "sandbox_lost",  # the sandbox's host or daemon is gone
    "environment",  # an environment broke its own contract (an exception in reset, step, grade)
    "engine",  # the inference engine failed
    "deadline",  # an operation of ours outlasted its deadline and was interrupted
    "resource",  # the harness ran out of disk, memory, processes or descriptors
    "task",  # the task cannot be run: a bad row, a first prompt that does not fit
    "replay",  # a replayed episode did not reproduce its observations
]
FaultStage = Literal["reset", "generate", "step", "grade", "snapshot", "restore", "close"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem to solve.

    `answer` belongs to the grader alone: it never reaches a prompt, a tool, the agent's sandbox or a log
    line, and is therefore left out of `repr`.
    """

    id: str
    """Stable, derived from content: see `envs.tasksets.task_id`."""
    env: str
    """Id of the environment, such as `sql-v1`."""
    prompt: tuple[Message, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the world is built from; JSON values only."""
    answer: Any = field(default=None, repr=False)
    split: Split = "train"
    seed: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardComponent:
    """One named part of a reward. An invalid component (a grader that could not decide) counts as absent."""

    name: str
    value: float
    weight: float = 1.0
    scope: Scope = "episode"
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Reward:
    """Named components; `scalar` is their weighted sum over the valid ones."""

    components: tuple[RewardComponent, ...] = ()

    @property
    def scalar(self) -> float:
        """Weighted sum of the valid components."""
        return float(sum(c.weight * c.value for c in self.components if c.valid))

    def of(self, scope: Scope) -> tuple[RewardComponent, ...]:
        """The components of one scope."""
        return tuple(c for c in self.components if c.scope == scope)

    def __add__(self, other: Reward) -> Reward:
        return Reward(self.components + other.components)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that infrastructure, environment or user did wrong; never the model.

    `detail` is for people who run the harness and is never shown to a model.
    """

    kind: FaultKind
    stage: FaultStage
    retryable: bool = False
    detail: str = ""


class FaultError(RuntimeError):
    """Carries a `Fault` from where it is noticed to the one place that records it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"{fault.kind} fault during {fault.stage}: {fault.detail}")
        self.fault = fault


class Step(NamedTuple):
    """Gymnasium's 5-tuple with names.

    `info` holds `reward` (a `Reward`: the named components behind the float), `stop` (a `StopReason`, once
    the episode has ended) and `state_key` (a string when the environment can name its state, else absent).
    """

    observation: list[Message]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An immutable point of an episode from which `Env.restore` continues.

    Every snapshot can be restored by replaying `actions` and comparing each observation's hash; `state`
    holds a copy of the world where the environment can make one, and then replay is not needed.
    """

    env: str
    task: Task
    seed: int | None
    actions: tuple[Message, ...]
    observation_hashes: tuple[str, ...]
    """One per observation, the one of `reset` first."""
    state: Any = None
    on_release: Callable[[], None] | None = None

    def release(self) -> None:
        """Give back what the copy holds (files, layers); safe to call twice."""
        if self.on_release is not None:
            self.on_release()


@runtime_checkable
class Policy(Protocol):
    """Something that plays: a scripted policy or a chat API. No tokenizer is needed."""

    def act(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Message:
        """Return the next assistant message for this conversation."""
        ...

"""Every seam of the learning layer, as a Protocol with a few methods.

A new idea implements one of these in one file and is named in one map; nothing else changes.
`Sandbox` is in `sandbox.base`, `Policy` and `Env` are in `envs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from agent_rl.types.annotations import AnnotationName, Annotations
from agent_rl.types.credits import Credits
from agent_rl.types.forest import Forest
from agent_rl.types.metrics import Metrics
from agent_rl.types.node import Float32, Int32
from envs.types import StopReason, Task
from tools.types import Message

# ---------------------------------------------------------------------------------------------- inference


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one action is sampled. Training samples by temperature alone; 0 means greedy."""

    max_new_tokens: int
    temperature: float = 1.0
    stop_ids: tuple[int, ...] = ()
    """End-of-turn ids; the one that was sampled is the last token of the completion."""
    seed: tuple[int | str, ...] = ()
    """Keys the generator: the same seed, prefix and weights give the same tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """Tokens as sampled, their log-probabilities at the sampling temperature, and who sampled them."""

    token_ids: Int32  # [L]
    logprobs: Float32  # [L]
    versions: Int32  # [L]
    stop: Literal["stop", "length", "cancelled"]
    queue_s: float = 0.0
    run_s: float = 0.0
    cached_tokens: int = 0
    """Prefix tokens whose keys and values were reused."""
    entropies: Float32 | None = None  # [L], nats


@runtime_checkable
class Engine(Protocol):
    """Samples tokens after a prefix and holds the weights it samples with."""

    async def generate(self, token_ids: Int32, sampling: Sampling, policy: str = "main") -> Completion:
        """Sample one action after `token_ids` [P].

        Cancelling the awaiting task stops the request.

        Raises:
            FaultError: of kind `engine` when the engine died or is stuck.
            ValueError: prefix and `max_new_tokens` do not fit the window, or the policy is unknown.
        """
        ...

    async def load_weights(self, policy: str, version: int, tensors: Mapping[str, Any]) -> None:
        """Replace the weights in place and drop every cached prefix of older versions."""
        ...

    @property
    def window(self) -> int:
        """Most tokens of prefix and completion together."""
        ...

    async def close(self) -> None:
        """Stop; pending requests end as cancelled."""
        ...


# ------------------------------------------------------------------------------------------------ context


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """What a context manager may know after a turn: sizes in tokens and the chain's messages."""

    messages: Sequence[Message]
    """Messages of the chain, the last action and its observation included."""
    prompt: Sequence[Message]
    """The task's first messages."""
    state_tokens: int
    """Tokens before the last action."""
    action_tokens: int
    observation_tokens: int
    rewrites: int
    """Rewrites so far in this episode."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Go on in the same chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Ask the policy for a summary after `instruction`, then open a new chain.

    The new chain begins with `prefix`, the summary as a message of role `summary_role`, and nothing else.
    With `discard_last` the last action and its observation are dropped from the context first; they stay in
    the forest and train nothing.
    """

    instruction: Message
    prefix: Sequence[Message]
    summary_role: Literal["user", "system"] = "user"
    discard_last: bool = True


@dataclass(frozen=True, slots=True)
class Overflow:
    """The context is exhausted: the episode ends truncated, for `reason`."""

    reason: StopReason


ContextDecision = Keep | Rewrite | Overflow


@runtime_checkable
class ContextManager(Protocol):
    """Decides what the model sees next. Stateless: everything it knows is in the view."""

    def observe(self, view: ContextView) -> ContextDecision:
        """Decide after a turn whether its observation is kept, or the context rewritten."""
        ...


# ---------------------------------------------------------------------------------------------- branching


@dataclass(frozen=True, slots=True)
class Branch:
    """Continue `n` new episodes after the first `at` tokens of `node`."""

    node: str
    at: int
    n: int


@runtime_checkable
class Branching(Protocol):
    """Chooses where a group grows next."""

    @property
    def snapshots(self) -> bool:
        """Whether environments must be snapshotted after every turn."""
        ...

    def next(self, forest: Forest, budget: int, rng: np.random.Generator) -> list[Branch]:
        """Choose the next branches of one group.

        Args:
            forest: one group; at first its root node alone, without episodes.
            budget: episodes that may still be started.
            rng: keyed by group, so that a run can be repeated.

        Returns:
            Branches whose `n` sum to at most `budget`; empty when the group is complete.
        """
        ...


# ------------------------------------------------------------------------------------------------- credit


@runtime_checkable
class Estimator(Protocol):
    """Turns rewards into advantages: forest and annotations in, credits out. A pure function."""

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Annotations to compute first."""
        ...

    def credit(self, forest: Forest, annotations: Annotations) -> Credits:
        """Credit every action token that shall be trained."""
        ...


# ------------------------------------------------------------------------------------------------- losses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossInputs:
    """Tensors of one pack, all [M] and aligned with the current log-probabilities.

    `tokens`, `sequences` and `sequence_tokens` [S] are the denominators of the whole optimiser step.
    """

    advantages: Any
    weights: Any
    sampled_logprobs: Any
    proximal_logprobs: Any
    """Log-probabilities at the weights about to be updated; the sampled ones where nothing was scored."""
    reference_logprobs: Any | None
    sequence_ids: Any
    sequence_tokens: Any
    tokens: int
    sequences: int


@runtime_checkable
class PolicyLoss(Protocol):
    """One policy loss: sums over a pack, already divided by the step's denominators."""

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Annotations to compute first."""
        ...

    def loss(self, current_logprobs: Any, inputs: LossInputs) -> tuple[Any, Metrics]:
        """Return this pack's share of the loss (a scalar tensor) and of the metrics (sums over packs)."""
        ...


# --------------------------------------------------------------------------------------------- curriculum


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """A task to collect a group for."""

    task: Task
    max_turns: int | None = None


@runtime_checkable
class Curriculum(Protocol):
    """Chooses tasks, and which groups are worth training on. State is JSON, so that a run resumes."""

    def sample(self, step: int, n: int) -> list[TaskRequest]:
        """The next `n` tasks; deterministic given step and state."""
        ...

    def update(self, forest: Forest, credits: Credits) -> None:
        """Learn from what a step brought."""
        ...

    def filter(self, forest: Forest) -> list[str]:
        """Ids of the groups to train on."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON state for a checkpoint."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state()`."""
        ...


# ------------------------------------------------------------------------------------ weights and records


@runtime_checkable
class WeightPublisher(Protocol):
    """Carries weights from the learner to the engine. The only arrow back."""

    async def publish(self, policy: str, version: int, tensors: Mapping[str, Any]) -> int:
        """Publish and return the version that the engine now serves."""
        ...


@runtime_checkable
class Sink(Protocol):
    """Records metrics of a step."""

    def record(self, step: int, metrics: Metrics) -> None:
        """Write one record."""
        ...

    def close(self) -> None:
        """Flush and release."""
        ...

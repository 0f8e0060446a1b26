"""One turn: from the tokens and messages of a state to an action.

Two actors stand behind one method: `EngineActor` samples from an engine, `PolicyActor` writes down what a scripted
policy says (a demonstration: tokens without log-probabilities).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from agent_rl.rendering import Renderer
from agent_rl.rollout.config import RolloutConfig
from agent_rl.rollout.faults import boundary
from agent_rl.types.node import Float32, Int32
from agent_rl.types.seams import Engine, Sampling
from envs.types import Policy
from tools.types import Message, ToolSchema

Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Action:
    """What the policy said: tokens as sampled, and the message that they spell."""

    token_ids: Int32  # [L]
    message: Message
    cut: Literal["length", "cancelled"] | None
    """What cut it, the token limit or an engine that stopped: the episode ends."""
    logprobs: Float32 | None = None  # [L]
    versions: Int32 | None = None  # [L]
    entropies: Float32 | None = None  # [L]
    temperature: float = 1.0
    queue_s: float = 0.0
    run_s: float = 0.0
    cached_tokens: int = 0


class Actor(Protocol):
    """Plays one side of an episode."""

    async def act(
        self,
        state: Int32,
        said: Int32,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        key: Key,
        kind: Literal["env", "context"],
    ) -> Action:
        """Act in `state` [P].

        Args:
            state: everything the engine sees.
            said: the end of `state` that already belongs to this action (a branch inside a turn), often empty.
            messages: the same state as messages.
            tools: what may be called.
            key: keys the generator.
            kind: `context` asks for a summary.

        Raises:
            FaultError: the engine failed.
        """
        ...

    def room(self, window: int) -> int:
        """Tokens that a state may have and still be acted in."""
        ...


class EngineActor:
    """Samples from an engine."""

    def __init__(
        self, engine: Engine, renderer: Renderer, config: RolloutConfig, *, temperature: float
    ) -> None:
        self.engine = engine
        self.renderer = renderer
        self.max_new_tokens = config.max_new_tokens
        self.temperature = temperature

    def room(self, window: int) -> int:
        """The window less the tokens of one action."""
        return window - self.max_new_tokens

    async def act(
        self,
        state: Int32,
        said: Int32,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        key: Key,
        kind: Literal["env", "context"],
    ) -> Action:
        """Sample the next action."""
        del messages
        sampling = Sampling(
            max_new_tokens=self.max_new_tokens - len(said),
            temperature=self.temperature,
            stop_ids=self.renderer.stop_ids,
            seed=key,
        )
        with boundary("generate"):
            done = await self.engine.generate(state, sampling)
        whole = np.concatenate([said, done.token_ids]).astype(np.int32)
        return Action(
            token_ids=done.token_ids,
            message=self.renderer.parse(whole, tools) if kind == "env" else self.renderer.plain(whole),
            cut=None if done.stop == "stop" else done.stop,
            logprobs=done.logprobs,
            versions=done.versions,
            entropies=done.entropies,
            temperature=self.temperature,
            queue_s=done.queue_s,
            run_s=done.run_s,
            cached_tokens=done.cached_tokens,
        )


class PolicyActor:
    """Writes down what a scripted policy says, in the model's own format."""

    def __init__(self, policy: Policy, renderer: Renderer) -> None:
        self.policy = policy
        self.renderer = renderer

    def room(self, window: int) -> int:
        """The whole window: a demonstration samples nothing."""
        return window

    async def act(
        self,
        state: Int32,
        said: Int32,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        key: Key,
        kind: Literal["env", "context"],
    ) -> Action:
        """Ask the policy."""
        del state, said, key
        with boundary("generate"):
            # A policy that is offered no tools is asked for a summary (`envs.policies`).
            message = self.policy.act(messages, tools if kind == "env" else ())
        return Action(token_ids=self.renderer.action(message, tools), message=message, cut=None)

"""What goes into `reset` and comes out of a turn, in Gymnasium's terms."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from envs.spaces import Messages
from envs.types import Reward, Split, Step, StopReason, Task
from tools.types import Message

_TRUNCATING: frozenset[StopReason] = frozenset({"max_turns", "max_summaries", "deadline", "cancelled"})
"""Stop reasons that say nothing about the task: Gymnasium's `truncated`. The others are `terminated`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the model sees after a turn, the turn's rewards, and whether the world ended the episode."""

    observation: list[Message]
    reward: Reward = field(default_factory=Reward)
    stop: StopReason | None = None
    state_key: str | None = None
    """Names the state of the world, when the environment can."""


def to_step(
    observation: list[Message], reward: Reward, stop: StopReason | None, state_key: str | None
) -> Step:
    """The step that a caller gets; optional keys of `info` are absent rather than None."""
    info: dict[str, Any] = {"reward": reward}
    if stop is not None:
        info["stop"] = stop
    if state_key is not None:
        info["state_key"] = state_key
    truncated = stop in _TRUNCATING
    return Step(observation, reward.scalar, stop is not None and not truncated, truncated, info)


def copy_messages(messages: list[Message]) -> list[Message]:
    """A private copy of what environment code returned.

    Raises:
        TypeError: it is no list of messages.
    """
    if not Messages().contains(messages):
        raise TypeError(f"an observation is a list of messages with role and content, got {messages!r:.200}")
    return copy.deepcopy(messages)


def read_options(options: dict[str, Any], split: Split) -> tuple[Task | None, Split]:
    """The task of `reset(options=...)`, or none, and the split to draw one from.

    Raises:
        ValueError: an unknown option.
        TypeError: the task is no `Task`.
    """
    unknown = sorted(set(options) - {"task", "split"})
    if unknown:
        raise ValueError(f"reset knows the options 'task' and 'split', got {unknown[0]!r}")
    task = options.get("task")
    if not (task is None or isinstance(task, Task)):
        raise TypeError(f"options['task'] is a Task, got {type(task).__name__}")
    return task, options.get("split", split)

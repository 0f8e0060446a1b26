"""Hashes that make a replay verifiable, and the replay itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from envs.types import Fault, FaultError, Snapshot
from tools.types import Message

if TYPE_CHECKING:
    from envs.base import Env


def canonical_json(value: Any) -> str:
    """One text per JSON value: sorted keys, no spaces, ASCII only.

    Bytes become their hex digits and sets their sorted members.

    Raises:
        TypeError: the value holds something that JSON cannot say.
        ValueError: the value holds NaN or an infinity.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=_plain
    )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(
        f"only JSON values are allowed, got {type(value).__name__}: {value!r:.100}; "
        "convert it to text, numbers, lists or dicts"
    )


def observation_hash(messages: Sequence[Message]) -> str:
    """Name an observation by its content: 32 hex digits, equal for equal messages."""
    return hashlib.blake2b(canonical_json(list(messages)).encode(), digest_size=16).hexdigest()


def replay(env: Env, snapshot: Snapshot) -> None:
    """Bring a fresh `env` to the point of `snapshot` by playing its actions again, each observation compared.

    Raises:
        FaultError: of kind `replay` when an observation differs or the episode ends early.
    """
    messages, _ = env.reset(seed=snapshot.seed, options={"task": snapshot.task})
    _compare(messages, snapshot, 0)
    for number, action in enumerate(snapshot.actions, start=1):
        if env.over:
            raise _fault(f"the replayed episode ended before turn {number} of {len(snapshot.actions)}")
        _compare(env.step(action).observation, snapshot, number)


def _compare(messages: Sequence[Message], snapshot: Snapshot, number: int) -> None:
    if observation_hash(messages) != snapshot.observation_hashes[number]:
        where = "the first messages differ" if number == 0 else f"the observation of turn {number} differs"
        raise _fault(f"{snapshot.env}, task {snapshot.task.id}: {where} from the recorded ones")


def _fault(detail: str) -> FaultError:
    return FaultError(Fault(kind="replay", stage="restore", detail=detail))

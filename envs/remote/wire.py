"""What client and server of an environment say: frames of `sandbox.remote.wire` whose one part is JSON."""

from __future__ import annotations

import json
from typing import Any

from envs.types import Fault, Reward, RewardComponent, Step
from sandbox.remote import wire
from sandbox.remote.wire import Malformed

MAX_BYTES = 64 << 20
"""Of one message."""


def pack(value: Any) -> list[bytes]:
    """A frame that carries a JSON value."""
    text = json.dumps(
        value, separators=(",", ":"), allow_nan=False
    )  # in the order given: schemas are shown in it
    return wire.encode(wire.Head, {}, (text.encode(),))


def unpack(body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a frame.

    Raises:
        Malformed: it is no such frame.
    """
    _, parts = wire.decode(wire.Head, body)
    ((text,),) = wire.take(parts, 1)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the part is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Malformed(f"a JSON object is expected, got {type(value).__name__}")
    return value


def step_row(step: Step) -> dict[str, Any]:
    """A step as JSON; `info` beyond reward, stop and state key does not travel."""
    return {
        "observation": step.observation,
        "components": [[c.name, c.value, c.weight, c.scope, c.valid] for c in step.info["reward"].components],
        "stop": step.info.get("stop"),
        "state_key": step.info.get("state_key"),
    }


def reward_of(rows: Any) -> Reward:
    """The inverse of the components of `step_row`.

    Raises:
        Malformed: it is something else.
    """
    try:
        return Reward(
            tuple(
                RewardComponent(
                    name=str(name),
                    value=float(value),
                    weight=float(weight),
                    scope="turn" if scope == "turn" else "episode",
                    valid=bool(valid),
                )
                for name, value, weight, scope, valid in rows
            )
        )
    except (TypeError, ValueError) as error:
        raise Malformed(f"a reward is a list of components: {error}") from error


def fault_row(fault: Fault) -> dict[str, Any]:
    """A fault as JSON."""
    return {"kind": fault.kind, "stage": fault.stage, "retryable": fault.retryable, "detail": fault.detail}

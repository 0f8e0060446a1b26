"""A short way to write a `Reward`."""

from __future__ import annotations

import math

from envs.types import Reward, RewardComponent, Scope


def reward(
    value: float | None = None, /, *, scope: Scope = "episode", **components: float | tuple[float, float]
) -> Reward:
    """Build a reward from one value, or from named components.

    `reward(1.0)` has one component named `reward`. `reward(solved=1.0, style=(0.5, 0.1))` has two: a pair is
    (value, weight), and the weight is 1 otherwise.

    Raises:
        ValueError: nothing was given, or a number is not finite.
    """
    named: dict[str, float | tuple[float, float]] = dict(components)
    if value is not None:
        named = {"reward": value, **named}
    if not named:
        raise ValueError("a reward needs a value or named components, such as reward(solved=1.0)")
    built = []
    for name, given in named.items():
        number, weight = given if isinstance(given, tuple) else (given, 1.0)
        built.append(RewardComponent(name=name, value=float(number), weight=float(weight), scope=scope))
    return checked(Reward(tuple(built)))


def checked(value: Reward) -> Reward:
    """Return the reward when every number in it is finite.

    Raises:
        ValueError: a component is NaN or infinite.
    """
    for component in value.components:
        if not (math.isfinite(component.value) and math.isfinite(component.weight)):
            raise ValueError(
                f"rewards are finite, component {component.name!r} has value {component.value} and weight "
                f"{component.weight}; mark it valid=False when it cannot be decided"
            )
    return value

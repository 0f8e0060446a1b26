"""Configuration of the credit stage."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_SCALE = {"anchor": "none"}
"""What the paper of an estimator divides by, where that is not the standard deviation."""


class CreditConfig(BaseModel):
    """Which estimator, and how statistics of a group become advantages.

    GRPO is `baseline=mean, scale=std`; Dr.GRPO `mean, none`; RLOO `leave_one_out, none`. GiGPO's `mean_norm`
    is `anchor` with `scale=none` (its default), `mean_std_norm` with `scale=std`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "group"
    """`group`, `anchor`, `tree`, `demonstration`, or `package.module:Class`."""
    baseline: Literal["mean", "leave_one_out"] = "mean"
    scale: Literal["std", "none"] = "std"
    """Divide by the unbiased standard deviation or not; `none` by default for `anchor`."""
    gamma: float = Field(0.95, ge=0, le=1)
    """Discount per turn (anchor)."""
    step_weight: float = 1.0
    """Weight of the anchor term next to the episode term (anchor)."""
    rule: Literal["tree_grpo", "tree_rl"] = "tree_grpo"
    """How a tree is credited (tree)."""

    @model_validator(mode="before")
    @classmethod
    def _default_scale(cls, values: Any) -> Any:
        # Filled in here, so that the printed configuration shows what is used.
        if isinstance(values, dict) and "scale" not in values and values.get("name") in _SCALE:
            return {**values, "scale": _SCALE[values["name"]]}
        return values

"""Configuration of the policy loss."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Aggregation = Literal[
    "token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "drgrpo"
]

_DEFAULTS: dict[str, dict[str, Any]] = {
    "sequence": {"clip_low": 3e-4, "clip_high": 4e-4, "dual_clip": 0.0, "aggregation": "seq-mean-token-mean"},
}
"""What the paper of a loss uses, where that differs from the field's default."""


class LossConfig(BaseModel):
    """Which loss, how it is clipped, corrected for off-policy sampling, kept near a reference and averaged.

    The defaults are DAPO's for `clipped` and GSPO's for `sequence`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "clipped"
    """`clipped`, `sequence`, `supervised`, or `package.module:Class`."""
    clip_low: float = Field(0.2, ge=0, le=1)
    clip_high: float = Field(0.28, ge=0)
    """The ratio is clipped to [1 - clip_low, 1 + clip_high]; 3e-4 and 4e-4 by default for `sequence`."""
    dual_clip: float = Field(3.0, ge=0)
    """Bounds the loss of a negative advantage at this ratio; 0 turns it off (default for `sequence`)."""
    aggregation: Aggregation = "token-mean"
    """How token losses become one number: see `losses.aggregate`."""
    max_length: int = Field(1024, ge=1)
    """The constant C of `seq-mean-token-sum-norm` and `drgrpo`, in tokens."""
    kl: Literal["none", "k1", "k2", "k3"] = "none"
    kl_coefficient: float = Field(0.0, ge=0)
    correction: Literal["none", "tis", "mis"] = "none"
    """How the gap between engine and learner is corrected: weights capped (TIS) or masked (MIS)."""
    correction_level: Literal["token", "sequence"] = "token"
    correction_low: float = Field(0.5, ge=0)
    """Lower bound of the MIS window."""
    correction_high: float = Field(2.0, gt=0)
    """Cap of TIS, upper bound of the MIS window; 5 to 10 suit the sequence level."""

    @model_validator(mode="before")
    @classmethod
    def _paper_defaults(cls, values: Any) -> Any:
        # Filled in here, so that the printed configuration shows what is used.
        return {**_DEFAULTS.get(values.get("name", ""), {}), **values} if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _no_contradiction(self) -> LossConfig:
        if (self.kl == "none") != (self.kl_coefficient == 0):
            raise ValueError(
                f"kl and kl_coefficient go together, but kl is {self.kl!r} and kl_coefficient "
                f"{self.kl_coefficient}: set both or neither"
            )
        if 0 < self.dual_clip <= 1:
            raise ValueError(f"dual_clip is above 1, or 0 for off, but it is {self.dual_clip}: use 3")
        if self.correction_low >= self.correction_high:
            raise ValueError(
                f"correction_low lies below correction_high, but they are {self.correction_low} and "
                f"{self.correction_high}: use 0.5 and 2"
            )
        return self

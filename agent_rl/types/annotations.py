"""Annotations: per-token arrays that the learner adds to a forest it did not sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_rl.types.node import Float32

AnnotationName = Literal["proximal_logprobs", "reference_logprobs", "values", "sum_squared_probs"]


@dataclass(frozen=True, slots=True)
class Annotations:
    """`arrays[name][node_id]` is a [L] float32 array aligned with that node's tokens.

    Only action nodes are annotated. `proximal_version` is the weights version that computed
    `proximal_logprobs`.
    """

    arrays: Mapping[str, Mapping[str, Float32]] = field(default_factory=dict)
    proximal_version: int | None = None

    def get(self, name: AnnotationName, node: str) -> Float32 | None:
        """The array of one node, or None when it was not computed."""
        return self.arrays.get(name, {}).get(node)

"""Aggregation: token losses of one pack become this pack's share of the step's loss.

Denominators are those of the whole optimiser step, so that the sum over packs does not depend on how the
batch was packed. A sequence is one chain of one episode; chains without loss tokens do not count.
"""

from __future__ import annotations

from torch import Tensor

from agent_rl.losses.config import Aggregation
from agent_rl.types.seams import LossInputs


def aggregate(losses: Tensor, inputs: LossInputs, how: Aggregation, max_length: int) -> Tensor:
    """Weighted share of the step's loss, a scalar.

    * `token-mean`: sum / tokens (DAPO)
    * `seq-mean-token-sum`: sum / sequences
    * `seq-mean-token-mean`: mean over sequences of the mean over their tokens (GRPO, GSPO)
    * `seq-mean-token-sum-norm`: sum / C, not divided by the number of sequences
    * `drgrpo`: sum / (C * sequences) (Dr.GRPO, arXiv 2503.20783)

    Args:
        losses: [M] per token, before the weights of the credit rows.
        inputs: holds the weights and the denominators.
        how: one of the above.
        max_length: C.

    Returns:
        0, with its graph, for a step without tokens.
    """
    weighted: Tensor = losses * inputs.weights
    if how == "seq-mean-token-mean":
        weighted = weighted / inputs.sequence_tokens[inputs.sequence_ids]
    divisor = {
        "token-mean": inputs.tokens,
        "seq-mean-token-sum": inputs.sequences,
        "seq-mean-token-mean": inputs.sequences,
        "seq-mean-token-sum-norm": max_length,
        "drgrpo": max_length * inputs.sequences,
    }[how]
    return weighted.sum() / max(divisor, 1)

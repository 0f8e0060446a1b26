from __future__ import annotations

import pytest
import torch

from agent_rl.losses.aggregate import aggregate
from tests.agent_rl.losses.inputs import column, inputs


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("token-mean", 2.5),
        ("seq-mean-token-sum", 5.0),
        ("seq-mean-token-mean", 3.0),
        ("seq-mean-token-sum-norm", 2.5),
        ("drgrpo", 1.25),
    ],
)
def test_worked_example(how, expected: float) -> None:
    # Reference D2: losses 1, 2, 3 in one sequence, 4 in another; masked tokens have no entry at all. C = 4.
    assert aggregate(column([1, 2, 3, 4]), inputs([0] * 4, sequences=[0, 0, 0, 1]), how, 4).item() == expected


@pytest.mark.parametrize(
    "how", ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm", "drgrpo"]
)
def test_no_tokens_give_0_with_a_graph(how) -> None:
    losses = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    total = aggregate(losses, inputs([]), how, 4)
    total.backward()
    assert total.item() == 0


def test_weights_multiply() -> None:
    assert aggregate(column([1, 2]), inputs([0, 0], weights=[1, 0.5]), "token-mean", 4).item() == 1.0

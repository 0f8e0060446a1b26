"""KL estimators (http://joschu.net/blog/kl-approx.html), from the log-probabilities of sampled tokens."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

LOG_RATIO_LIMIT = 20.0
KL_LIMIT = 10.0


def kl(current: Tensor, reference: Tensor, how: Literal["k1", "k2", "k3"]) -> Tensor:
    """Estimate KL(current || reference) per token, [M].

    With d = current - reference: `k1` = d, `k2` = d^2 / 2, `k3` = exp(-d) + d - 1. k1 and k3 are unbiased in
    value. As a loss only the gradient counts, and there `k2` has the true one; that of `k1` is 0 on average
    (it only adds noise) and that of `k3` is the gradient of the reverse direction, true to first order.
    """
    d = (current - reference).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    estimate = {"k1": lambda: d, "k2": lambda: 0.5 * d * d, "k3": lambda: (-d).exp() + d - 1}[how]()
    return estimate.clamp(-KL_LIMIT, KL_LIMIT)

"""The learning curve as a picture: success of the training groups, and held-out evaluations with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def draw_learning_curve(
    path: Path,
    steps: Sequence[Mapping[str, Any]],
    evaluations: Sequence[Mapping[str, Any]],
    *,
    title: str,
) -> None:
    """Write a PNG.

    Args:
        path: of the picture.
        steps: rows `{"step", "metrics"}` as the store gives them.
        evaluations: rows `{"step", "report"}`; `step` counts finished steps.
        title: above the axes.

    Raises:
        ImportError: matplotlib is not installed (extra `train`).
        OSError: the path cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), constrained_layout=True)
    xs = [row["step"] + 1 for row in steps]
    success = [row["metrics"].get("rollout/success") for row in steps]
    flat = [row["metrics"].get("rollout/zero_spread") for row in steps]
    axes.plot(xs, success, color="tab:blue", label="training episodes")
    axes.plot(xs, flat, color="grey", linestyle=":", label="groups without spread")
    reports = [row["report"] for row in evaluations]
    axes.errorbar(
        [row["step"] for row in evaluations],
        [r["success"] for r in reports],
        # At 0 and 1 rounding can put an end of the interval on the wrong side of the point.
        yerr=[
            [max(r["success"] - r["low"], 0.0) for r in reports],
            [max(r["high"] - r["success"], 0.0) for r in reports],
        ],
        fmt="o",
        capsize=4,
        color="tab:red",
        label="held-out tasks, 95 % interval",
    )
    axes.set(xlabel="RL step", ylabel="success", ylim=(0, 1.02), title=title)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncol=3, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)

"""Tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from agent_rl.evaluation import Report


def reports_table(reports: Iterable[Report]) -> Table:
    """One row an evaluation."""
    table = Table(box=None, pad_edge=False)
    for name, justify in (
        ("evaluation", "left"),
        ("success", "right"),
        ("95 % interval", "right"),
        ("tasks", "right"),
        ("turns", "right"),
        ("tool errors", "right"),
        ("faults", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for r in reports:
        table.add_row(
            r.name,
            f"{r.success:.3f}",
            f"[{r.low:.3f}, {r.high:.3f}]",
            str(r.tasks),
            f"{r.turns:.2f}",
            f"{100 * r.tool_error_rate:.1f} %",
            str(sum(r.faults.values())),
        )
    return table

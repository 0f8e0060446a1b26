"""What an evaluation found: one frozen record, as JSON and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_rl.evaluation.metrics import clustered_interval, pass_at_k, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One episode as an evaluation sees it."""

    task_id: str
    reward: float
    success: bool
    turns: int
    tokens: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    stop: str = ""
    fault: str | None = None
    detail: str = ""
    """What is known about the fault, for people."""
    seconds: float = 0.0
    level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Success over tasks with a 95 % interval; episodes that faulted are counted apart and judged by nobody."""

    name: str
    success: float
    low: float
    high: float
    tasks: int
    samples: int
    """Episodes a task."""
    pass_at: Mapping[int, float]
    reward: float
    turns: float
    tokens: float
    tool_calls: float
    tool_error_rate: float
    """Share of tool calls that were answered with an error."""
    stops: Mapping[str, int]
    faults: Mapping[str, int]
    fault_examples: Mapping[str, str] = field(default_factory=dict)
    """What one fault of each kind said."""
    by_level: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON values."""
        data = asdict(self)
        data["pass_at"] = {str(k): v for k, v in self.pass_at.items()}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """What `to_json` wrote."""
        return cls(**{**data, "pass_at": {int(k): v for k, v in data["pass_at"].items()}})


def summarise(name: str, outcomes: Sequence[Outcome], *, seconds: float = 0.0) -> Report:
    """Sum outcomes up; the interval is Wilson's for one sample a task, else a bootstrap over tasks."""
    judged = [o for o in outcomes if o.fault is None]
    by_task: dict[str, list[Outcome]] = {}
    for outcome in judged:
        by_task.setdefault(outcome.task_id, []).append(outcome)
    rates = [sum(o.success for o in os) / len(os) for os in by_task.values()]
    samples = max((len(os) for os in by_task.values()), default=0)
    wins = sum(o.success for o in judged)
    success = sum(rates) / len(rates) if rates else 0.0
    low, high = wilson(wins, len(judged)) if samples <= 1 else clustered_interval(rates)
    full = [os for os in by_task.values() if len(os) == samples]
    n, calls = max(len(judged), 1), sum(o.tool_calls for o in judged)
    levels = sorted({o.level for o in judged if o.level})
    return Report(
        name=name,
        success=success,
        low=low,
        high=high,
        tasks=len(by_task),
        samples=samples,
        pass_at={
            k: sum(pass_at_k(samples, sum(o.success for o in os), k) for os in full) / len(full)
            for k in (1, 2, 4, 8, 16)
            if full and k <= samples
        },
        reward=sum(o.reward for o in judged) / n,
        turns=sum(o.turns for o in judged) / n,
        tokens=sum(o.tokens for o in judged) / n,
        tool_calls=calls / n,
        tool_error_rate=sum(o.tool_errors for o in judged) / max(calls, 1),
        stops=dict(Counter(o.stop for o in judged)),
        faults=dict(Counter(o.fault for o in outcomes if o.fault is not None)),
        fault_examples={o.fault: o.detail for o in reversed(outcomes) if o.fault is not None},
        by_level={
            level: sum(o.success for o in judged if o.level == level) / sum(o.level == level for o in judged)
            for level in levels
        },
        seconds=seconds,
    )

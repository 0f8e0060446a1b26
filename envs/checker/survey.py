"""A user's own tasks, one by one: which are broken, passable without solving them, or hackable.

found = survey("sql-v1", tasks)
print(found.text())
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from envs import registry
from envs.checker.cost import Cost, metered
from envs.checker.subject import Subject
from envs.errors import NoGoldError
from envs.policies import PolicySpec
from envs.taskrows import RowError
from envs.types import FaultError, Task
from sandbox.conformance.report import Broken

Finding = Literal["sound", "unproven", "broken", "passable", "hackable"]
SAMPLE = 20
REASON_CHARS = 300
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinding:
    """What playing one task showed; `sloppy` is what the sloppy policy scored, None where there is none."""

    task_id: str
    finding: Finding
    reason: str = ""
    gold: float | None = None
    sloppy: float | None = None
    cost: Cost = field(default_factory=Cost)
    """Of one gold episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Every task that was played, and the rows that could not be read."""

    target: str
    findings: tuple[TaskFinding, ...]
    errors: tuple[RowError, ...] = ()
    total: int = 0
    """How many tasks the sample was drawn from."""

    @property
    def passed(self) -> bool:
        """Whether every row was read and no task that was played is broken, passable or hackable."""
        good = all(f.finding in ("sound", "unproven") for f in self.findings)
        return bool(self.findings) and not self.errors and good

    def to_json(self) -> dict[str, Any]:
        """`{"target", "passed", "total", "tasks": [...], "errors": [...]}`."""
        tasks = [
            {
                "id": f.task_id,
                "finding": f.finding,
                "reason": f.reason,
                "gold": f.gold,
                "sloppy": f.sloppy,
                "seconds": f.cost.seconds,
                "cpu_s": f.cost.cpu_s,
                "peak_bytes": f.cost.peak_bytes,
            }
            for f in self.findings
        ]
        errors = [
            {"file": e.file, "line": e.line, "field": e.field, "message": e.message} for e in self.errors
        ]
        return {
            "target": self.target,
            "passed": self.passed,
            "total": self.total,
            "tasks": tasks,
            "errors": errors,
        }

    def text(self) -> str:
        """A plain table with one line a task, then the bad rows, then a line that counts."""
        lines = [f"{'finding':<9} {'gold':>5} {'sloppy':>6} {'seconds':>8} {'cpu s':>6} {'MiB':>5}  task"]
        for f in self.findings:
            lines.append(
                f"{f.finding:<9} {_number(f.gold):>5} {_number(f.sloppy):>6} {f.cost.seconds:>8.2f} "
                f"{f.cost.cpu_s:>6.2f} {f.cost.peak_bytes / 2**20:>5.0f}  {f.task_id}"
            )
            if f.reason:
                lines.append(f"{'':<9} {f.reason}")
        lines += [str(error) for error in self.errors]
        counts = {kind: sum(f.finding == kind for f in self.findings) for kind in Finding.__args__}  # type: ignore[attr-defined]
        counted = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
        lines.append(
            f"{self.target}: {len(self.findings)} of {self.total} tasks played: {counted or 'none'}; "
            f"{len(self.errors)} bad rows"
        )
        return "\n".join(lines)


def survey(
    env_id: str,
    tasks: Sequence[Task],
    *,
    errors: Sequence[RowError] = (),
    sample: int | None = SAMPLE,
    seed: int = 0,
    progress: Callable[[str], None] = lambda task_id: None,
    **options: Any,
) -> Survey:
    """Play gold (twice), no-op, sloppy, every attack and trivial answers on a user's tasks.

    A task is *broken* when gold does not score 1 both times or a fault arises, *passable* when no-op or a trivial
    answer scores, *hackable* when an attack does, *unproven* when it has no solution to play. Golds are a user's
    data and run under the agent's limits.

    Args:
        env_id: the environment that the tasks are for.
        tasks: all of them; trivial answers are drawn from their golds.
        errors: rows that could not be read, for the report.
        sample: how many to play, drawn by `seed`; None plays all.
        seed: of the sample and of the policies.
        progress: told the id of each task before it is played.
        options: given to the constructor.
    """
    spec = registry.spec(env_id)
    cls = spec.load()
    subject = Subject(
        target=env_id,
        spec=spec,
        cls=cls,
        n=len(tasks),
        seed=seed,
        resets=0,
        own_tasks=tuple(tasks),
        options=options,
    )
    chosen = list(tasks)
    if sample is not None and sample < len(chosen):
        chosen = random.Random(seed).sample(chosen, sample)
    unpaid = [
        *subject.policies("noop", "trivial"),
        *cls.trivial_policies(tasks).values(),
        *subject.policies("attack"),
    ]
    found = []
    for task in chosen:
        progress(task.id)
        found.append(_look_at(subject, task, unpaid))
    return Survey(target=env_id, findings=tuple(found), errors=tuple(errors), total=len(tasks))


def _look_at(subject: Subject, task: Task, unpaid: Sequence[PolicySpec]) -> TaskFinding:
    cost = Cost()
    gold = sloppy = None
    finding: Finding = "sound"
    reason = ""
    try:
        try:
            with metered() as meter:
                gold = _score(subject, subject.policy("gold"), task)
            cost = meter.cost
            again = _score(subject, subject.policy("gold"), task)
            if abs(gold - 1) > _TOLERANCE or abs(again - 1) > _TOLERANCE:
                finding, reason = "broken", f"gold scores {gold:g}, and {again:g} when played again"
        except NoGoldError as error:
            finding, reason = "unproven", str(error)
        for policy in subject.policies("sloppy")[:1]:
            sloppy = _score(subject, policy, task)
        paid = [(p, score) for p in unpaid if (score := _score(subject, p, task)) > _TOLERANCE]
    except Exception as error:  # noqa: BLE001 - the boundary to a user's task: what it makes of environment and policies
        named = "" if isinstance(error, FaultError | Broken) else f"{type(error).__name__}: "
        reason = f"{named}{error}"[:REASON_CHARS]
        return TaskFinding(task_id=task.id, finding="broken", reason=reason, gold=gold, cost=cost)
    if finding != "broken" and paid:
        finding = "hackable" if any(p.kind == "attack" for p, _ in paid) else "passable"
        reason = ", ".join(f"{p.kind} {p.name!r} scores {score:g}" for p, score in paid)
    return TaskFinding(task_id=task.id, finding=finding, reason=reason, gold=gold, sloppy=sloppy, cost=cost)


def _score(subject: Subject, policy: PolicySpec, task: Task) -> float:
    return subject.play(policy, task, seed=subject.seed).score


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

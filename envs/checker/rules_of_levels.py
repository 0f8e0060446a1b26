"""The rule about levels of difficulty: they are real, and the table of them is told."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

from envs.checker.subject import Subject
from sandbox.conformance.report import Broken, Unenforceable

AT_LEAST = 24
"""Tasks a level: a share of 24 has a standard error of at most 0.1."""
SPREAD = 0.2
"""How far a share may rise by chance from one level to the next."""


def levels_real(subject: Subject) -> str | None:
    """From the first level to the last, the sloppy policy's success falls and gold needs more turns."""
    if not subject.cls.levels:
        return "no levels are declared"
    if subject.own_tasks:
        return "tasks were given"
    sloppy = subject.policies("sloppy")
    if not sloppy:
        raise Unenforceable("levels are compared by the sloppy policy, and there is none")
    rows = []
    for level in subject.cls.levels:
        tasks = subject.cls.tasks("test", max(subject.n, AT_LEAST), subject.seed, level=level)
        success = mean(subject.play(sloppy[0], task, seed=subject.seed).score for task in tasks)
        turns = mean(len(subject.play(subject.policy("gold"), task).steps) for task in tasks[: subject.n])
        rows.append((level, success, turns))
    told = "; ".join(
        f"level {level}: sloppy {success:.2f}, gold {turns:.1f} turns" for level, success, turns in rows
    )
    for (level, success, turns), (later, later_success, later_turns) in pairwise(rows):
        if later_success > success + SPREAD or later_turns < turns - 0.5:
            raise Broken(f"level {later} is easier than level {level}: {told}")
    if len(rows) > 1 and (rows[-1][1] >= rows[0][1] or rows[-1][2] <= rows[0][2]):
        raise Broken(f"the last level is not harder than the first: {told}")
    return told

"""What grading found, and the reward that follows from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from envs.types import Reward, RewardComponent

MAX_DIFF_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """The first verdict: pytest in a fresh sandbox. `sound` says whether its report can be believed at all."""

    fail_to_pass: int = 0
    pass_to_pass: int = 0
    sound: bool = False
    timed_out: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The second verdict: recorded calls in a sandbox without pytest."""

    passed: int
    total: int
    timed_out: bool = False
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every call did what the original did."""
        return 0 < self.total == self.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that a reward of `swe-v1` rests on; stored beside it, for people and never for the model."""

    kind: str = "in_process"
    """`replayed` where there are recorded calls, else `in_process`: pytest's word alone."""
    fail_to_pass: int = 0
    """How many tests there are that failed before."""
    pass_to_pass: int = 0
    tests: TestRun = TestRun()
    replay: Replay | None = None
    """None when there is nothing to replay, or the tests had already failed."""
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Paths that were changed and that no change counts for."""
    digest: str = ""
    diff: str = ""
    reason: str = ""

    @property
    def resolved(self) -> bool:
        """Both verdicts agree that the repository is repaired."""
        run = self.tests
        complete = run.fail_to_pass == self.fail_to_pass > 0 and run.pass_to_pass == self.pass_to_pass
        replayed = self.replay is not None and self.replay.agrees
        return run.sound and complete and (replayed or self.kind == "in_process")

    @property
    def timed_out(self) -> bool:
        """Whether a wall-clock limit decided."""
        return self.tests.timed_out or (self.replay is not None and self.replay.timed_out)

    @property
    def reward(self) -> Reward:
        """`resolved` is the reward; the shares have weight 0."""
        replay = self.replay
        return Reward(
            (
                RewardComponent(name="resolved", value=float(self.resolved), weight=1.0),
                _share("fail_to_pass", self.tests.fail_to_pass, self.fail_to_pass),
                _share("pass_to_pass", self.tests.pass_to_pass, self.pass_to_pass),
                _share("replay", replay.passed if replay else 0, replay.total if replay else 0),
            )
        )

    def to_json(self) -> dict[str, Any]:
        """For `info["evidence"]`."""
        return {**asdict(self), "resolved": self.resolved, "diff": self.diff[:MAX_DIFF_CHARS]}


def _share(name: str, passed: int, total: int) -> RewardComponent:
    """Absent (not valid) where there is nothing to count."""
    value = passed / total if total else 0.0
    return RewardComponent(name=name, value=value, weight=0.0, valid=total > 0)

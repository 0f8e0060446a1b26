"""One flaw each: every class breaks the rule that `tests/envs/test_checker.py` names beside it."""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from envs.policies import PolicySpec, ScriptedPolicy
from envs.rewards import reward
from envs.tasksets import world_seeds
from envs.types import Reward, Split, Step, Task
from tests.envs.toys.sums import Sums, make_task
from tools.errors import ToolError
from tools.schema import tool
from tools.types import Message

_counter = itertools.count()


class NoAttack(Sums):
    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        return {name: p for name, p in super().policies().items() if p.kind != "attack"}


class NoDescription(Sums):
    @tool
    def shrug(self) -> str:
        return "-"


class SeedIgnored(Sums):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(options=options)


class ChangingTasks(Sums):
    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [replace(t, id=f"task-{next(_counter)}") for t in super().tasks(split, n, seed)]


class TaskEaten(Sums):
    @tool
    def read(self, index: int) -> int:
        """Read a number by its index, and forget it."""
        number = int(self.task.data["numbers"][index])
        self.task.data["numbers"][index] = 0
        return number


class OneWorldForAll(Sums):
    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [
            replace(make_task(cls.id, split, s), id=f"{split}-{s}") for s in world_seeds("train", n, seed)
        ]


class GradesLow(Sums):
    def grade(self) -> Reward | float:
        return reward(solved=0.9 * (self.submitted == self.task.answer))


class PaysForNothing(Sums):
    def grade(self) -> Reward | float:
        return reward(solved=float(self.submitted == self.task.answer), present=(1.0, 0.1))


class BelievesParts(Sums):
    def grade(self) -> Reward | float:
        return reward(solved=float(bool(self.submitted) and self.submitted in self.task.answer))


class GradesTwice(Sums):
    def step(self, action: Message | str) -> Step:
        step = super().step(action)
        return step._replace(reward=2 * step.reward)


class NeverStops(Sums):
    turns = 0  # type: ignore[assignment]


class Crashes(Sums):
    @tool
    def read(self, index: int) -> int:
        """Read a number by its index."""
        return self.numbers[index]


class LeaksInErrors(Sums):
    @tool
    def read(self, index: int) -> int:
        """Read a number by its index."""
        if index >= len(self.numbers):
            raise ToolError(f"the numbers are {self.task.answer}")
        return self.numbers[index]


class LeaksInLog(Sums):
    def setup(self, task: Task) -> None:
        super().setup(task)
        logging.getLogger(__name__).debug("expecting %s", task.answer)


class LeaksInState(Sums):
    def state_key(self) -> str | None:
        return str(self.task.answer)


class TellsTime(Sums):
    @tool
    def note(self, text: str) -> str:
        """Write a note."""
        return f"noted at {time.perf_counter_ns()}"


class HashOrder(Sums):
    @tool
    def note(self, text: str) -> str:
        """Write a note."""
        return " ".join({"ada", "ben", "eva", "max", "zoe", "kim", "lee"})


class ForgetsNotes(Sums):
    def load_state(self, state: Any) -> None:
        super().load_state(state)
        self.notes = []


class SharesNotes(Sums):
    def copy_state(self) -> Any:
        return self

    def load_state(self, state: Any) -> None:
        super().load_state((state.numbers, state.notes))
        self.notes = state.notes


class GoesOn(Sums):
    def step(self, action: Message | str) -> Step:
        if self.over:
            return Step([], 0.0, True, False, {"reward": Reward(), "stop": "submitted"})
        return super().step(action)


class ClosesOnce(Sums):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True
        super().close()


class LeavesDescriptor(Sums):
    def setup(self, task: Task) -> None:
        super().setup(task)
        os.open("/dev/null", os.O_RDONLY)


class LeavesFile(Sums):
    def setup(self, task: Task) -> None:
        super().setup(task)
        Path(tempfile.mkdtemp(), "left").write_text("over", encoding="utf-8")


class LeavesProcess(Sums):
    """A grandchild, whose parent has gone: it is no descendant any more."""

    def setup(self, task: Task) -> None:
        super().setup(task)
        subprocess.run(["sh", "-c", "sleep 6 > /dev/null 2>&1 &"], check=True, start_new_session=True)


class FailsToStart(Sums):
    def setup(self, task: Task) -> None:
        raise RuntimeError("no world today")


class LevelsAlike(Sums):
    """Two levels of the same tasks."""

    levels = (1, 2)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        guess = PolicySpec(name="guess", kind="sloppy", make=lambda t, s: ScriptedPolicy([]))
        return {**super().policies(), "guess": guess}

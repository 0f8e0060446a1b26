"""A small sound environment; the broken ones beside it are this one with a single flaw."""

from __future__ import annotations

import random
from typing import Any

from envs.policies import PolicySpec, ScriptedPolicy, call, calls
from envs.rewards import reward
from envs.tasksets import task_id, world_seeds
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from tools.errors import ToolError
from tools.schema import tool


class Sums(ToolEnv):
    """Read three numbers, write them down joined by dashes."""

    id = "sums-v1"
    max_turns = 5
    numbers: list[int]
    notes: list[str]

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [make_task(cls.id, split, s) for s in world_seeds(split, n, seed)]

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        return {p.name: p for p in POLICIES}

    def setup(self, task: Task) -> None:
        self.numbers, self.notes, self.submitted = list(task.data["numbers"]), [], ""

    @tool
    def read(self, index: int) -> int:
        """Read a number by its index from 0."""
        if not 0 <= index < len(self.numbers):
            raise ToolError(f"index is from 0 to {len(self.numbers) - 1}, got {index}")
        self.turn_reward("read", 0.1)
        return self.numbers[index]

    @tool
    def note(self, text: str) -> str:
        """Write a note and read all notes and a random digit."""
        self.notes.append(text)
        return f"{' '.join(self.notes)} {self.rng.integers(10)}"

    @tool
    def submit(self, text: str) -> str:
        """Hand in the numbers joined by dashes."""
        self.submitted = text
        self.finish()
        return "received"

    def grade(self) -> Reward | float:
        return reward(solved=float(self.submitted == self.task.answer))

    def state_key(self) -> str | None:
        return f"{len(self.notes)} notes"

    def copy_state(self) -> Any:
        return (tuple(self.numbers), tuple(self.notes))

    def load_state(self, state: Any) -> None:
        self.numbers, self.notes, self.submitted = list(state[0]), list(state[1]), ""


def make_task(env: str, split: Split, seed: int) -> Task:
    numbers = random.Random(seed).sample(range(1000, 10000), 3)
    answer = "-".join(map(str, numbers))
    return Task(
        id=task_id(env, PROMPT, {"numbers": numbers}, answer),
        env=env,
        prompt=PROMPT,
        data={"numbers": numbers},
        answer=answer,
        split=split,
        seed=seed,
    )


PROMPT = ({"role": "user", "content": "Which are the numbers 0, 1, 2?"},)


def gold(task: Task, seed: int) -> ScriptedPolicy:
    steps = [
        calls(("read", {"index": 0}), ("read", {"index": 1})),
        call("read", index=2),
        call("note", text="all read"),
    ]
    return ScriptedPolicy([*steps, call("submit", text=task.answer)])


def noop(task: Task, seed: int) -> ScriptedPolicy:
    return ScriptedPolicy([])


def partly(task: Task, seed: int) -> ScriptedPolicy:
    """An attack: hands in the first number only."""
    return ScriptedPolicy([call("read", index=0), call("submit", text=str(task.data["numbers"][0]))])


POLICIES = (
    PolicySpec(name="gold", kind="gold", make=gold),
    PolicySpec(name="noop", kind="noop", make=noop),
    PolicySpec(name="partly", kind="attack", make=partly),
)

"""An environment written on `Env` itself, without tools; every place can be told to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envs.base import Env, Outcome
from envs.rewards import reward
from envs.types import Reward, Split, Task
from tools.types import Message


class Echo(Env):
    """Repeats what it hears; `stop` ends the episode; every place can be told to fail."""

    id = "echo-v1"
    max_turns = 4

    def __init__(self, fail: dict[str, Callable[[], Any]] | None = None, **base: Any) -> None:
        super().__init__(**base)
        self.fail = fail or {}
        self.ended = self.graded = 0

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [make_task(seed + i, split) for i in range(n)]

    def _at(self, place: str) -> None:
        if place in self.fail:
            self.fail[place]()

    def _begin(self, task: Task) -> list[Message]:
        self._at("reset")
        return list(task.prompt)

    def _turn(self, action: Message) -> Outcome:
        self._at("step")
        text = f"{action['content']} {self.rng.integers(1000)}"
        stop = "submitted" if action["content"] == "stop" else None
        return Outcome(
            observation=[{"role": "user", "content": text}],
            reward=reward(heard=0.25, scope="turn"),
            stop=stop,  # type: ignore[arg-type]
        )

    def _grade(self) -> Reward:
        self._at("grade")
        self.graded += 1
        return reward(done=1.0)

    def _end(self) -> None:
        self.ended += 1
        self._at("close")


def make_task(seed: int, split: Split = "train") -> Task:
    return Task(
        id=f"t{seed}",
        env="echo-v1",
        prompt=({"role": "user", "content": f"task {seed}"},),
        seed=seed,
        split=split,
    )


TASK = {"task": make_task(7)}

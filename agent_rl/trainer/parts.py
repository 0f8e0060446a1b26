"""Everything a loop works with. `agent_rl.build` makes it; the loops only call it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_rl.learner import Learner
from agent_rl.rollout import Collector
from agent_rl.storage import Store
from agent_rl.trainer.config import TrainerConfig, WarmStartConfig
from agent_rl.types.seams import Curriculum, Engine, Estimator, Sink, WeightPublisher
from envs.types import Policy, Task


class Progress(Protocol):
    """Shows long work while it runs."""

    def phase(self, name: str, total: int) -> None:
        """A phase of `total` units begins."""
        ...

    def advance(self, n: int = 1) -> None:
        """`n` units are done."""
        ...

    def say(self, text: str) -> None:
        """One line for people."""
        ...


class Silent:
    """Shows nothing."""

    def phase(self, name: str, total: int) -> None:
        """Nothing."""

    def advance(self, n: int = 1) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The objects of one run, in the order in which a step uses them."""

    run_dir: Path
    config: TrainerConfig
    warm_start: WarmStartConfig
    curriculum: Curriculum
    collector: Collector
    engine: Engine
    estimator: Estimator
    learner: Learner
    supervised: Callable[[], Learner]
    """Makes the learner of the warm start over the same model, with an optimiser of its own."""
    publisher: WeightPublisher
    store: Store
    sinks: Sequence[Sink]
    progress: Progress
    eval_tasks: Sequence[Task]
    demonstration_tasks: Sequence[Task]
    demonstrator: Callable[[Task, int], Policy] | None
    seed: int

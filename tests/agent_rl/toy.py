"""A toy world and a model of it: `look` finds a word, `submit` must name it. Shared by tests of rollouts and loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from agent_rl.branching import BranchingConfig
from agent_rl.branching import make as make_branching
from agent_rl.context import ContextConfig
from agent_rl.context import make as make_context
from agent_rl.inference import ScriptedEngine
from agent_rl.learner.tiny import build_tokenizer
from agent_rl.rendering import Renderer
from agent_rl.rollout import Collection, Collector, RolloutConfig
from agent_rl.types.seams import Sampling, TaskRequest
from envs.base import PolicySpec
from envs.policies import Script, ScriptedPolicy, call
from envs.tool_env import ToolEnv
from envs.types import Fault, FaultError, Reward, RewardComponent, Task
from tools import formats
from tools.schema import tool

WORDS = ("red", "green", "blue", "white")
TEXTS = [f'look("a") submit("{w}") what is a? The word is {w}. Summary: submitted' for w in WORDS] * 4


class LookEnv(ToolEnv):
    """Look a word up, then submit it."""

    id = "look-v0"
    max_turns = 6
    breaks: ClassVar[Callable[[LookEnv], None] | None] = None
    """What goes wrong inside `look`, for tests of faults."""

    def setup(self, task: Task) -> None:
        self.word = task.answer
        self.submitted: str | None = None

    @tool
    def look(self, key: str) -> str:
        """Look a key up."""
        if type(self).breaks is not None:
            type(self).breaks(self)
        self.turn_reward("looked", 0.25, weight=0.0)
        return f"The word is {self.word}."

    @tool
    def submit(self, word: str) -> str:
        """Submit the word."""
        self.submitted = word
        self.finish()
        return "submitted"

    def grade(self) -> Reward:
        return Reward((RewardComponent(name="correct", value=float(self.submitted == self.word)),))

    @classmethod
    def schemas(cls) -> Any:
        """What the prompt shows."""
        env = cls()
        env.reset(options={"task": task()})
        return env.tools

    @classmethod
    def tasks(cls, split: Any = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        return [task(i, split) for i in range(n)]

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        def gold(task: Task, seed: int) -> Any:
            def script() -> Script:
                yield call("look", key="a")
                yield call("submit", word=task.answer)

            return ScriptedPolicy(script())

        return {"gold": PolicySpec(name="gold", kind="gold", make=gold)}


def task(i: int = 0, split: Any = "train") -> Task:
    return Task(
        id=f"{split}{i}",
        env="look-v0",
        prompt=({"role": "user", "content": "what is a?"},),
        answer=WORDS[i % len(WORDS)],
        split=split,
        seed=i,
    )


TOKENIZER = build_tokenizer(TEXTS, min_count=2)


def renderer() -> Renderer:
    return Renderer(TOKENIZER, formats.get("pythonic"))


def ids(text: str) -> list[int]:
    """What an engine would sample for this text."""
    return [*TOKENIZER.encode(text, add_special_tokens=False), TOKENIZER.eos_token_id]


def engine(say: Callable[[str, Sampling], str], *, window: int = 400, **more: Any) -> ScriptedEngine:
    """An engine that answers text with text; `say` sees the prefix decoded."""

    def script(prefix: Any, sampling: Sampling) -> Any:
        return ids(say(TOKENIZER.decode(prefix), sampling))

    return ScriptedEngine(script, window=window, vocab=len(TOKENIZER), **more)


def look_then_submit(state: str, sampling: Sampling) -> str:
    """Submits what `look` showed; every second sample submits something else."""
    if "The word is" not in state:
        return 'look("a")'
    word = state.rpartition("The word is ")[2].partition(".")[0]
    sample = sampling.seed[5]
    return f'submit("{word if int(sample) % 2 == 0 else "wrong"}")'


def collector(
    engine: Any,
    *,
    branching: BranchingConfig | None = None,
    context: ContextConfig | None = None,
    deterministic: bool = False,
    make_env: Callable[[], Any] | None = None,
    **config: Any,
) -> Collector:
    return Collector(
        engine=engine,
        renderer=renderer(),
        context=make_context(context or ContextConfig(), engine.window),
        branching=make_branching(branching or BranchingConfig()),
        config=RolloutConfig(**{"max_new_tokens": 40, **config}),
        make_env=make_env or LookEnv,
        seed=7,
        deterministic=deterministic,
    )


def collect(collector: Collector, tasks: int = 1, group_size: int = 4, step: int = 0) -> Collection:
    requests = [TaskRequest(task=task(i)) for i in range(tasks)]
    return asyncio.run(collector.collect(requests, step=step, group_size=group_size))


def lost(env: LookEnv) -> None:
    raise FaultError(Fault(kind="sandbox_lost", stage="step", retryable=True, detail="the host is gone"))


class Flaky:
    """Fails the first `n` times."""

    def __init__(self, n: int, what: Callable[[LookEnv], None] = lost) -> None:
        self.left, self.what, self.lock = n, what, threading.Lock()

    def __call__(self, env: LookEnv) -> None:
        with self.lock:
            self.left -= 1
            fails = self.left >= 0
        if fails:
            self.what(env)


def slow(env: LookEnv) -> None:
    """Takes a moment that depends on nothing a test controls."""
    time.sleep(float(np.random.default_rng().uniform(0, 0.01)))

"""Evaluation: the same rollouts as training, or a scripted policy or chat API without any tokenizer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from agent_rl.branching import AtRoot, BranchingConfig
from agent_rl.evaluation.report import Outcome, Report, summarise
from agent_rl.rollout import Collector
from agent_rl.rollout.episode import tool_errors
from agent_rl.rollout.faults import boundary
from agent_rl.types import Episode, Forest
from agent_rl.types.seams import TaskRequest
from envs.base import Env
from envs.types import FaultError, Policy, Task
from tools.types import Message

SUCCESS = 1.0 - 1e-9
"""An episode succeeds when its episode reward is at least one."""


async def evaluate(
    collector: Collector,
    tasks: Sequence[Task],
    *,
    name: str,
    step: int = 0,
    samples: int = 1,
    temperature: float | None = None,
    progress: Callable[[Episode], None] | None = None,
) -> tuple[Report, Forest]:
    """Play every task `samples` times with the collector's engine.

    Returns:
        The report, and the forest behind it.
    """
    collection = await collector.collect(
        [TaskRequest(task=task) for task in tasks],
        step=step,
        group_size=samples,
        purpose="eval",
        branching=AtRoot(BranchingConfig()),
        temperature=temperature,
        progress=progress,
    )
    forest = collection.forest
    outcomes = [_outcome(forest, e) for e in forest.episodes]
    return summarise(name, outcomes, seconds=collection.seconds), forest


def _outcome(forest: Forest, episode: Episode) -> Outcome:
    turns = [forest.turns[t] for t in episode.turns]
    return Outcome(
        task_id=episode.task_id,
        reward=episode.reward,
        success=episode.reward >= SUCCESS,
        turns=len(turns),
        tokens=sum(len(forest.nodes[t.action]) for t in turns),
        tool_calls=sum(t.tool_calls for t in turns),
        tool_errors=sum(t.tool_errors for t in turns),
        stop=episode.stop or "",
        fault=episode.fault.kind if episode.fault else None,
        detail=episode.fault.detail if episode.fault else "",
        level=str(episode.metadata.get("level", "")),
    )


def evaluate_policy(
    make_env: Callable[[], Env],
    policy: Callable[[Task, int], Policy],
    tasks: Sequence[Task],
    *,
    name: str,
    seed: int = 0,
    threads: int = 4,
    progress: Callable[[Outcome], None] | None = None,
) -> Report:
    """Play every task once with a scripted policy; no model, no tokens."""
    began = time.perf_counter()

    def one(task: Task) -> Outcome:
        outcome = play(make_env, policy(task, seed), task)[0]
        if progress is not None:
            progress(outcome)
        return outcome

    with ThreadPoolExecutor(threads) as pool:
        outcomes = list(pool.map(one, tasks))
    return summarise(name, outcomes, seconds=time.perf_counter() - began)


def play(
    make_env: Callable[[], Env],
    policy: Policy,
    task: Task,
    *,
    on_message: Callable[[Message], None] | None = None,
) -> tuple[Outcome, list[Message]]:
    """One episode of a policy, with its conversation. A fault is an outcome, never a reward."""
    began = time.perf_counter()
    said: list[Message] = []
    counts = {"turns": 0, "calls": 0, "errors": 0}
    reward, stop, fault, detail = 0.0, "", None, ""
    env = make_env()

    def tell(messages: Sequence[Message]) -> None:
        said.extend(messages)
        for message in messages:
            counts["errors"] += tool_errors([message])
            if on_message is not None:
                on_message(message)

    try:
        with boundary("reset"):
            tell(env.reset(seed=task.seed, options={"task": task})[0])
        while not stop:
            with boundary("generate"):
                action = policy.act(said, env.tools)
            tell([action])
            with boundary("step"):
                step = env.step(action)
            counts["turns"] += 1
            counts["calls"] += len(action.get("tool_calls", ()))
            counts["errors"] += len(action.get("parse_errors", ()))
            reward += sum(c.weight * c.value for c in step.info["reward"].of("episode") if c.valid)
            tell(step.observation)
            if step.terminated or step.truncated:
                stop = step.info.get("stop", "submitted")
    except FaultError as error:
        stop, fault, detail = "fault", error.fault.kind, error.fault.detail
    finally:
        with contextlib.suppress(FaultError), boundary("close"):  # the episode is over
            env.close()
    outcome = Outcome(
        task_id=task.id,
        reward=reward,
        success=reward >= SUCCESS,
        turns=counts["turns"],
        tool_calls=counts["calls"],
        tool_errors=counts["errors"],
        stop=stop,
        fault=fault,
        detail=detail,
        seconds=time.perf_counter() - began,
        level=str(task.metadata.get("level", "")),
    )
    return outcome, said

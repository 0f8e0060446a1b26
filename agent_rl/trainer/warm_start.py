"""Supervised warm start: demonstrations go through the same forest, trie and learner as everything else."""

from __future__ import annotations

import numpy as np

from agent_rl.branching import AtRoot, BranchingConfig
from agent_rl.credit import CreditConfig
from agent_rl.credit import make as make_estimator
from agent_rl.trainer.parts import Parts
from agent_rl.types import Annotations, Forest
from agent_rl.types.seams import TaskRequest


async def warm_start(parts: Parts) -> None:
    """Imitate the configured policy for `warm_start.steps` steps.

    Raises:
        ValueError: no policy to imitate, although steps were asked for.
        RuntimeError: no demonstration can be imitated.
    """
    config = parts.warm_start
    if config.steps == 0:
        return
    if parts.demonstrator is None:
        raise ValueError(f"warm_start.steps = {config.steps} needs a policy to imitate")
    tasks = parts.demonstration_tasks
    parts.progress.phase("demonstrations", len(tasks))
    collection = await parts.collector.demonstrate(
        [TaskRequest(task=task) for task in tasks],
        parts.demonstrator,
        step=0,
        branching=AtRoot(BranchingConfig()),
        progress=lambda episode: parts.progress.advance(),
    )
    forest = collection.forest
    parts.store.save_forest(0, forest, "demonstrations")
    episodes = _usable(parts, forest)
    learner = parts.supervised()
    estimator = make_estimator(CreditConfig(name="demonstration"))
    rng = np.random.default_rng((parts.seed, 1))
    order: list[int] = []
    parts.progress.phase("warm start", config.steps)
    for step in range(config.steps):
        while len(order) < config.batch_size:
            order += rng.permutation(len(episodes)).tolist()
        chosen, order = order[: config.batch_size], order[config.batch_size :]
        part = forest.select(episodes[i] for i in chosen)
        metrics = learner.update(part, estimator.credit(part, Annotations()), Annotations())
        parts.progress.advance()
        if (step + 1) % max(config.steps // 10, 1) == 0:
            parts.progress.say(f"warm start {step + 1}/{config.steps}: loss {metrics['loss']:.4f}")


def _usable(parts: Parts, forest: Forest) -> list[str]:
    """Ids of the episodes to imitate; those that faulted are shown."""
    usable = [e.id for e in forest.episodes if not e.exclude_from_loss]
    faults = [e.fault for e in forest.episodes if e.fault is not None]
    first = f"; the first: {faults[0].kind} during {faults[0].stage}: {faults[0].detail}" if faults else ""
    if not usable:
        raise RuntimeError(
            f"none of {len(forest.episodes)} demonstrations can be imitated, {len(faults)} faulted{first}; "
            "try the policy first: agent-rl play ENV --policy NAME"
        )
    if faults:
        parts.progress.say(f"{len(faults)} of {len(forest.episodes)} demonstrations faulted{first}")
    return usable

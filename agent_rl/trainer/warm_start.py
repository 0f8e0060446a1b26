"""Supervised warm start: demonstrations go through the same forest, trie and learner as everything else."""

from __future__ import annotations

import numpy as np

from agent_rl.branching import AtRoot, BranchingConfig
from agent_rl.credit import CreditConfig
from agent_rl.credit import make as make_estimator
from agent_rl.trainer.parts import Parts
from agent_rl.types import Annotations
from agent_rl.types.seams import TaskRequest


async def warm_start(parts: Parts) -> None:
    """Imitate the configured policy for `warm_start.steps` steps.

    Raises:
        ValueError: no policy to imitate, although steps were asked for.
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
    episodes = [e.id for e in forest.episodes if e.fault is None]
    parts.store.save_forest(0, forest, "demonstrations")
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

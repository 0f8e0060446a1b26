"""The rule about what stays behind."""

from __future__ import annotations

from envs.base import Env
from envs.checker.conduct import wander
from envs.checker.holdings import can_look, look, look_until_clean, private_folder
from envs.checker.subject import Subject, play
from envs.policies import PolicySpec
from envs.types import Task
from sandbox.conformance.report import Broken, Unenforceable

RESETS_PER_ENV = 10
WARM_UP = 2 * RESETS_PER_ENV
"""Resets before the first look: what the environment keeps for all of its instances may start."""


def nothing_left_behind(subject: Subject) -> None:
    """Many resets, some with a fork, leave no process, mount, temporary file or descriptor behind.

    Temporary files are looked for where `tempfile` and TMPDIR point to.
    """
    if not can_look():
        raise Unenforceable("this machine has no /proc to see processes, mounts and descriptors in")
    tasks, gold = subject.tasks(), subject.policy("gold")
    with private_folder() as (folder, mark):
        _reset_often(subject, tasks, gold, WARM_UP)
        before = look(folder, mark)
        _reset_often(subject, tasks, gold, subject.resets)
        left = look_until_clean(before, folder, mark)
        if left:
            raise Broken(f"{subject.resets} resets left behind: {'; '.join(left)}")


def _reset_often(subject: Subject, tasks: list[Task], gold: PolicySpec, resets: int) -> None:
    env: Env | None = None
    try:
        for number in range(resets):
            if env is None or number % RESETS_PER_ENV == 0:
                if env is not None:
                    env.close()
                env = subject.make()
            task = tasks[number % len(tasks)]
            messages, _ = env.reset(options={"task": task})
            if number % RESETS_PER_ENV == 1:
                _try_every_tool(env)
            elif number % RESETS_PER_ENV == 2:
                play(env, gold.make(task, 0), task)
            else:
                env.step(gold.make(task, 0).act(messages, env.tools))
    finally:
        if env is not None:
            env.close()


def _try_every_tool(env: Env) -> None:
    """Let the world start whatever it starts late, fork it, and leave both in the middle of the episode."""
    env.fork().close()
    for action in wander(env.tools):
        if env.over:
            return
        env.step(action)
        if not env.over:
            env.fork().close()

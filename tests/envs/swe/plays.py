"""Playing scripted episodes of `swe-v1` in tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envs.checker.subject import Transcript, play
from envs.policies import calls
from envs.swe.env import SweEnv
from envs.swe.policies import POLICIES
from envs.types import Task


def played(backend: str, name: str, task: Task, seed: int = 0) -> tuple[Transcript, dict[str, Any]]:
    """One episode of a policy (an attack is shown no answer) and the evidence of its last step."""
    shown = task if POLICIES[name].kind != "attack" else replace(task, answer=None)
    env = SweEnv(backend=backend)
    try:
        seen = play(env, POLICIES[name].make(shown, seed), task)
        return seen, seen.steps[-1].info["evidence"]
    finally:
        env.close()


def use(env: SweEnv, name: str, **arguments: Any) -> str:
    """The observation of one tool call."""
    return env.step(calls((name, arguments))).observation[0]["content"]

"""Environments: tasks, worlds and graders, without any learning stack.

Names are loaded when first used, so that importing `envs.types` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envs.base import Env, Outcome
    from envs.errors import EnvError, EpisodeOverError, NotRunningError, TaskError, UnknownEnvError
    from envs.policies import PolicySpec, ScriptedPolicy
    from envs.registry import EnvSpec, list_ids, make, register, register_gymnasium, spec
    from envs.rewards import reward
    from envs.tasksets import load_jsonl, save_jsonl, task_id
    from envs.tool_env import ToolEnv
    from envs.types import Fault, FaultError, Policy, Reward, RewardComponent, Snapshot, Step, Task

_HOMES = {
    "envs.base": ("Env", "Outcome"),
    "envs.errors": ("EnvError", "EpisodeOverError", "NotRunningError", "TaskError", "UnknownEnvError"),
    "envs.policies": ("PolicySpec", "ScriptedPolicy"),
    "envs.registry": ("EnvSpec", "list_ids", "make", "register", "register_gymnasium", "spec"),
    "envs.rewards": ("reward",),
    "envs.tasksets": ("load_jsonl", "save_jsonl", "task_id"),
    "envs.tool_env": ("ToolEnv",),
    "envs.types": ("Fault", "FaultError", "Policy", "Reward", "RewardComponent", "Snapshot", "Step", "Task"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Env",
    "EnvError",
    "EnvSpec",
    "EpisodeOverError",
    "Fault",
    "FaultError",
    "NotRunningError",
    "Outcome",
    "Policy",
    "PolicySpec",
    "Reward",
    "RewardComponent",
    "ScriptedPolicy",
    "Snapshot",
    "Step",
    "Task",
    "TaskError",
    "ToolEnv",
    "UnknownEnvError",
    "list_ids",
    "load_jsonl",
    "make",
    "register",
    "register_gymnasium",
    "reward",
    "save_jsonl",
    "spec",
    "task_id",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'envs' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)

"""Train and judge tool-using language-model agents.

What people use stands here; everything else is imported from its own package:

    import agent_rl

    env = agent_rl.make("sql-v1")
    messages, info = env.reset(seed=0)
"""

from __future__ import annotations

import importlib.util
from pathlib import Path


def _check_companions() -> None:
    """The three packages beside this one have common names; another folder of that name may hide ours."""
    home = Path(__file__).resolve().parent.parent
    for name in ("sandbox", "tools", "envs"):
        spec = importlib.util.find_spec(name)
        origin = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if origin != home / name / "__init__.py":
            found = "nothing" if spec is None else str(origin or list(spec.submodule_search_locations or []))
            raise ImportError(
                f"agent_rl needs its own package {name!r} from {home / name}, but Python finds {found}; "
                f"rename or move what hides it, or start Python from another folder"
            )


_check_companions()

from envs.base import Env, PolicySpec  # noqa: E402
from envs.checker import check  # noqa: E402
from envs.policies import ScriptedPolicy, call, say, scripted  # noqa: E402
from envs.registry import list_ids, make, register, spec  # noqa: E402
from envs.rewards import reward  # noqa: E402
from envs.tasksets import generate, load_jsonl, task_id  # noqa: E402
from envs.tool_env import ToolEnv  # noqa: E402
from envs.types import Fault, FaultError, Policy, Reward, RewardComponent, Snapshot, Step, Task  # noqa: E402
from tools.errors import ToolError  # noqa: E402
from tools.schema import tool  # noqa: E402
from tools.types import Message, ToolCall, ToolResult  # noqa: E402

__version__ = "0.1.0"


__all__ = [
    "Env",
    "Fault",
    "FaultError",
    "Message",
    "Policy",
    "PolicySpec",
    "Reward",
    "RewardComponent",
    "ScriptedPolicy",
    "Snapshot",
    "Step",
    "Task",
    "ToolCall",
    "ToolEnv",
    "ToolError",
    "ToolResult",
    "call",
    "check",
    "generate",
    "list_ids",
    "load_jsonl",
    "make",
    "register",
    "reward",
    "say",
    "scripted",
    "spec",
    "task_id",
    "tool",
]

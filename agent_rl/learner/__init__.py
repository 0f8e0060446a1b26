"""The learner: weights, optimiser, and the passes over the trie. Importing the package alone loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_rl.learner.config import LearnerConfig

if TYPE_CHECKING:
    from agent_rl.learner.learner import Learner
    from agent_rl.learner.support import UnsupportedModelError


def __getattr__(name: str) -> Any:
    # Configurations are read by processes without torch: the rest of the package loads on first use.
    if name == "Learner":
        from agent_rl.learner.learner import Learner

        return Learner
    if name == "UnsupportedModelError":
        from agent_rl.learner.support import UnsupportedModelError

        return UnsupportedModelError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Learner", "LearnerConfig", "UnsupportedModelError"]

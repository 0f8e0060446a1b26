"""From credits to tensors: the prefix trie of a forest, cut into packs. NumPy only."""

from agent_rl.batching.split import split
from agent_rl.batching.trie import build, unmerged

__all__ = ["build", "split", "unmerged"]

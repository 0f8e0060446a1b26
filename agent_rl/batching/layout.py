"""Layout of one pack: tries in depth-first order, from sorted token paths.

Sorted lexicographically, the chains of a trie stand in depth-first order, and a chain adds the tokens after
its common prefix with the chain before. So one sort and one comparison of neighbours replace any pointer
structure: memcmp speed, and the same layout whatever order the episodes came in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from agent_rl.batching.sequences import Sequence
from agent_rl.types.batch import Int64
from agent_rl.types.node import Int32


@dataclass(slots=True)
class Layout:
    """A pack under construction; add chains in sorted order."""

    share: bool
    """False: no prefix is shared, every chain is a root of its own (the unmerged reference)."""
    members: list[tuple[Sequence, Int64]] = field(default_factory=list)
    """Each sequence with the index of each of its tokens in the pack, [L]."""
    size: int = 0
    _tokens: list[Int32] = field(default_factory=list)
    _firsts: list[tuple[int, int]] = field(default_factory=list)
    """(position of the first new token, number of new tokens) of each chain that added some."""
    _last: Int32 = field(default_factory=lambda: np.zeros(0, np.int32))
    _last_index: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))

    def shared(self, token_ids: Int32) -> int:
        """How many leading tokens the pack already holds."""
        return common_prefix(self._last, token_ids) if self.share else 0

    def add(self, sequence: Sequence, shared: int) -> None:
        """Append the tokens of a chain that come after its `shared` prefix."""
        new = sequence.token_ids[shared:]
        index = np.concatenate([self._last_index[:shared], np.arange(self.size, self.size + len(new))])
        self.members.append((sequence, index))
        self._last, self._last_index = sequence.token_ids, index
        if len(new):
            self._tokens.append(new)
            self._firsts.append((shared, len(new)))
            self.size += len(new)

    def arrays(self) -> tuple[Int64, Int64, Int64]:
        """`token_ids`, `positions` and `subtree_end`, [N] each."""
        token_ids = np.concatenate(self._tokens).astype(np.int64)
        positions = np.concatenate([np.arange(first, first + n) for first, n in self._firsts])
        return token_ids, positions, self._subtree_end()

    def _subtree_end(self) -> Int64:
        """End of each token's subtree: where the first later chain branches off above it.

        A stack of open runs `(first position, index of first token)`: a chain that starts new tokens at
        position p closes everything open at p or deeper.
        """
        ends = np.empty(self.size, np.int64)
        stack: list[tuple[int, int, int]] = []  # (first position, first index, open tokens)
        start = 0
        for first, count in [*self._firsts, (0, 0)]:
            while stack and stack[-1][0] + stack[-1][2] > first:
                position, index, n = stack.pop()
                kept = max(first - position, 0)
                ends[index + kept : index + n] = start
                if kept:
                    stack.append((position, index, kept))
            stack.append((first, start, count))
            start += count
        return ends


def in_trie_order(sequences: list[Sequence]) -> list[Sequence]:
    """Sequences sorted by tokens: depth-first order of their trie. Ties keep their order."""
    # Big-endian unsigned bytes compare like the token ids themselves.
    return sorted(sequences, key=lambda s: s.token_ids.astype(">u4").tobytes())


def common_prefix(a: Int32, b: Int32) -> int:
    """Leading tokens that two paths have in common."""
    n = min(len(a), len(b))
    different = a[:n] != b[:n]
    return int(different.argmax()) if different.any() else n

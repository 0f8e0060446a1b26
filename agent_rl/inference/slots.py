"""Which tokens every cache slot holds, and where a new request finds the prefix it shares.

```
 slot  tokens                     computed  live
    0  system task-A turn-1 ...        412  no     remembered: the next turn of this episode continues here
    1  system task-A                   300  yes    running
    2  system task-A                     0  yes    same prompt as 1: waits for 1 and copies its rows
    3                                    0  no     empty
```

`tokens` is what a slot holds or is about to compute; the first `computed` of them have keys and values.
Only NumPy: the tensors are in `kv_cache`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agent_rl.types import Int32

_NONE = -1  # fills the unused end of a row; no token id equals it
_WORTH_WAITING = 16  # tokens; fewer are computed sooner than another request's pass ends


class Placement(NamedTuple):
    """Where a request runs and what it reuses."""

    slot: int
    source: int
    """Slot that shares the longest prefix; equal to `slot` when the request continues in place."""
    reused: int
    """Tokens of the source that can be used at once."""
    expected: int
    """Tokens of the source that will be usable once it has computed them; more than `reused` only when it
    is worth waiting for."""


class SlotTable:
    """Book-keeping of the cache: contents, progress and order of use of every slot."""

    def __init__(self, max_slots: int, window: int) -> None:
        self.tokens: Int32 = np.full((max_slots, window), _NONE, dtype=np.int32)
        self.computed: npt.NDArray[np.int64] = np.zeros(max_slots, dtype=np.int64)
        self.live: npt.NDArray[np.bool_] = np.zeros(max_slots, dtype=np.bool_)
        self._used: npt.NDArray[np.int64] = np.zeros(max_slots, dtype=np.int64)
        self._clock = 0

    @property
    def free(self) -> int:
        """Slots that no request runs in."""
        return int((~self.live).sum())

    def place(self, prefixes: list[Int32]) -> list[Placement]:
        """Give each of at most `free` requests a slot, and mark it live.

        First every request that continues a remembered sequence takes that slot; only then the others evict
        what was used least recently, so that a newcomer never evicts what its own wave needs. The caller
        copies `reused` tokens from source to slot in the order of the answer: a later request may take an
        earlier one's source.
        """
        continued: dict[int, Placement] = {}
        for index, prefix in enumerate(prefixes):
            slot = self._continuation(prefix)
            if slot is not None:
                reused = int(self.computed[slot])
                continued[index] = Placement(slot, slot, reused, reused)
                self._take(slot, prefix, reused)
        return [continued[i] if i in continued else self._newcomer(p) for i, p in enumerate(prefixes)]

    def append(self, slot: int, length: int, token_id: int) -> None:
        """Write a sampled token after the first `length` tokens of a live slot."""
        self.tokens[slot, length] = token_id

    def advance(self, slot: int, computed: int) -> None:
        """Say that the first `computed` tokens of a slot now have keys and values."""
        self.computed[slot] = computed

    def release(self, slot: int) -> None:
        """End a request; what it computed is remembered until the slot is taken."""
        self.tokens[slot, self.computed[slot] :] = _NONE
        self.live[slot] = False
        self._touch(slot)

    def forget(self) -> None:
        """Drop everything remembered: the weights changed, or the cache may be damaged."""
        self.tokens[:] = _NONE
        self.computed[:] = 0
        self.live[:] = False

    def common(self, prefix: Int32) -> npt.NDArray[np.int64]:
        """Length of the prefix shared with every slot [slots], the last token of `prefix` left out.

        The last token is always computed again, because its logits are what is sampled from.
        """
        known = prefix[:-1]
        if not len(known):
            return np.zeros(len(self.computed), dtype=np.int64)
        differs = self.tokens[:, : len(known)] != known
        return np.where(differs.any(axis=1), differs.argmax(axis=1), len(known))

    def _continuation(self, prefix: Int32) -> int | None:
        """The slot without a request whose whole content begins `prefix`; the longest one."""
        complete = ~self.live & (self.computed > 0) & (self.common(prefix) == self.computed)
        if not complete.any():
            return None
        return int(np.where(complete, self.computed, -1).argmax())

    def _newcomer(self, prefix: Int32) -> Placement:
        common = self.common(prefix)
        source = int(common.argmax())
        expected = int(common[source])
        reused = int(min(expected, self.computed[source]))
        if expected - reused < _WORTH_WAITING:
            usable = np.minimum(common, self.computed)
            source = int(usable.argmax())
            reused = expected = int(usable[source])
        slot = self._victim()
        self._take(slot, prefix, reused)
        return Placement(slot, source, reused, expected)

    def _victim(self) -> int:
        """An empty slot, else the one used least recently; the lowest number, to keep live slots adjacent."""
        order = np.where(self.computed == 0, -1, self._used)
        return int(np.where(self.live, np.iinfo(np.int64).max, order).argmin())

    def _take(self, slot: int, prefix: Int32, computed: int) -> None:
        self.tokens[slot, : len(prefix)] = prefix
        self.tokens[slot, len(prefix) :] = _NONE
        self.computed[slot] = computed
        self.live[slot] = True
        self._touch(slot)

    def _touch(self, slot: int) -> None:
        self._clock += 1
        self._used[slot] = self._clock

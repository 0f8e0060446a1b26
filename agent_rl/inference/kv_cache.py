"""Keys and values of every slot, as transformers wants them: a `Cache`.

The model sees one row of N tokens; the plan says which slot and position each of them belongs to.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import Cache

from agent_rl.inference.slot_attention import StepPlan

_GROWTH = 256  # tokens; rows grow in steps of this size


class SlotCache(Cache):
    """Keys and values per layer, [slots, kv heads, T, head dim]; slots and T grow as they are needed."""

    def __init__(self, max_slots: int, window: int) -> None:
        super().__init__(layers=[])
        self._max_slots = max_slots
        self._window = window
        self._slots = 0
        self._length = 0
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._plan: StepPlan | None = None

    @property
    def bytes(self) -> int:
        """Memory that keys and values take."""
        return sum(t.numel() * t.element_size() for t in (*self._keys, *self._values))

    def begin(self, plan: StepPlan) -> None:
        """Say where the next forward pass writes; its slots and positions must have been reserved."""
        self._plan = plan

    def reserve(self, slots: int, length: int) -> None:
        """Make room for slots below `slots` and positions below `length`; contents stay."""
        if slots <= self._slots and length <= self._length:
            return
        if slots > self._slots:
            self._slots = min(self._max_slots, max(slots, 2 * self._slots))
        if length > self._length:
            self._length = min(self._window, -(-length // _GROWTH) * _GROWTH)
        for tensors in (self._keys, self._values):
            for layer, old in enumerate(tensors):
                new = old.new_zeros(self._slots, old.shape[1], self._length, old.shape[3])
                new[: old.shape[0], :, : old.shape[2]] = old
                tensors[layer] = new

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write one layer's new keys and values [1, kv heads, N, head dim] and return the whole layer."""
        assert self._plan is not None, "begin() comes before the model's forward"
        if layer_idx == len(self._keys):
            for tensors, new in ((self._keys, key_states), (self._values, value_states)):
                # Zeros: a masked position still multiplies its value by 0, and 0 times garbage may be NaN.
                tensors.append(new.new_zeros(self._slots, new.shape[1], self._length, new.shape[3]))
        keys, values = self._keys[layer_idx], self._values[layer_idx]
        keys[self._plan.slots, :, self._plan.positions] = key_states[0].transpose(0, 1)
        values[self._plan.slots, :, self._plan.positions] = value_states[0].transpose(0, 1)
        return keys, values

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Copy positions `begin:end` of one slot to another."""
        self.reserve(target + 1, end)
        for tensor in (*self._keys, *self._values):
            tensor[target, :, begin:end] = tensor[source, :, begin:end]

    def clear(self) -> None:
        """Free everything."""
        self._keys.clear()
        self._values.clear()
        self._slots = self._length = 0

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Nothing, as far as transformers is concerned: positions are always given explicitly."""
        return 0

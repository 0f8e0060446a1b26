"""Continuous batching: which tokens of which requests are computed in the next step.

```
 waiting ──place──> running ──step──> running ... ──stop or length──> answered; the slot is remembered
                       │ shares a prefix that another request is computing: waits, then copies its rows
```

Every running request has known tokens (prefix and sampled ones) of which the first few are computed. A step
computes one token of each request that is sampling, and as many prefix tokens of the others as
`prefill_chunk` allows, oldest first. Whoever's known tokens are then all computed samples its next one.
Prefixes and sampled tokens take the same path, so a next turn is just a longer prefix of a remembered slot.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch

from agent_rl.inference.config import EngineConfig
from agent_rl.inference.decoder import Decoder
from agent_rl.inference.request import Request
from agent_rl.inference.sampling import sample
from agent_rl.inference.slots import SlotTable
from agent_rl.types.seams import Completion

Answer = tuple[Request, Completion]


class Scheduler:
    """Requests, slots and the steps that serve them. Not thread-safe: the engine's thread calls it."""

    def __init__(self, decoder: Decoder, config: EngineConfig) -> None:
        self.version = 0
        self.stats = {
            "steps": 0,  # forward passes
            "prefill_tokens": 0,  # prefix tokens computed
            "cached_tokens": 0,  # prefix tokens reused, in place or copied
            "copied_tokens": 0,  # of these, copied from another slot
            "decode_tokens": 0,  # tokens sampled
        }
        self._decoder = decoder
        self._config = config
        self._table = SlotTable(config.max_slots, config.window)
        self._waiting: deque[Request] = deque()
        self._running: dict[int, Request] = {}  # by slot, oldest first

    @property
    def busy(self) -> bool:
        """Whether a request waits or runs."""
        return bool(self._waiting or self._running)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self._waiting.append(request)

    def load(self, version: int, tensors: Any) -> None:
        """Take new weights and drop what older ones computed; nothing may be running."""
        self._decoder.load(tensors)
        self.version = version
        self._reset()

    def drop(self) -> list[Request]:
        """Give up every request, and the cache with them; returns the requests, oldest first."""
        dropped = [*self._running.values(), *self._waiting]
        self._running.clear()
        self._waiting.clear()
        self._reset()
        return dropped

    def step(self) -> list[Answer]:
        """Admit what fits, compute one forward pass, sample; returns the requests that are answered now."""
        self._remove_cancelled()
        self._admit()
        takes = self._choose()
        return self._compute(takes) if takes else []

    def _reset(self) -> None:
        self._table.forget()
        self._decoder.clear()

    def _remove_cancelled(self) -> None:
        for slot in [s for s, request in self._running.items() if request.cancelled]:
            del self._running[slot]
            self._table.release(slot)
        if any(request.cancelled for request in self._waiting):
            self._waiting = deque(r for r in self._waiting if not r.cancelled)
        for slot, request in self._running.items():
            if request.waits_for is not None and request.waits_for[0] not in self._running:
                # Whoever computed the shared prefix was cancelled: compute what is still missing.
                self._copy_for(slot, request, int(self._table.computed[request.waits_for[0]]))

    def _admit(self) -> None:
        admitted = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._table.free))]
        placements = self._table.place([request.prefix for request in admitted])
        for request, placement in zip(admitted, placements, strict=True):
            request.admit()
            request.cached_tokens = placement.reused
            self.stats["cached_tokens"] += placement.reused
            if placement.source != placement.slot and placement.reused:
                self._decoder.copy_prefix(placement.source, placement.slot, 0, placement.reused)
                self.stats["copied_tokens"] += placement.reused
            if placement.expected > placement.reused:
                request.waits_for = (placement.source, placement.expected)
            self._running[placement.slot] = request

    def _choose(self) -> dict[int, int]:
        """How many tokens each running slot computes now."""
        budget = self._config.prefill_chunk
        takes: dict[int, int] = {}
        for slot, request in self._running.items():
            if request.n:
                takes[slot] = 1
            elif request.waits_for is None and budget:
                takes[slot] = min(budget, request.length - int(self._table.computed[slot]))
                budget -= takes[slot]
        return takes

    def _compute(self, takes: dict[int, int]) -> list[Answer]:
        """Run the model on the chosen tokens, then sample for every request whose tokens are all computed."""
        computed = self._table.computed
        singles = sorted(slot for slot, take in takes.items() if take == 1)
        chunks = [slot for slot, take in takes.items() if take > 1]
        lengths = [takes[slot] for slot in chunks]
        slots = np.concatenate([singles, np.repeat(chunks, lengths)]).astype(np.int32)
        positions = np.concatenate(
            [computed[singles], *(np.arange(computed[s], computed[s] + takes[s]) for s in chunks)]
        ).astype(np.int32)
        ends = [*range(len(singles)), *(len(singles) - 1 + np.cumsum(lengths, dtype=np.int64)).tolist()]
        keep: list[int] = []
        ready: list[int] = []
        for slot, end in zip([*singles, *chunks], ends, strict=True):
            request = self._running[slot]
            self._table.advance(slot, int(computed[slot]) + takes[slot])
            if not request.n:
                self.stats["prefill_tokens"] += takes[slot]
            if computed[slot] == request.length:
                keep.append(end)
                ready.append(slot)
        tokens = self._table.tokens[slots, positions]
        logits = self._decoder.forward(tokens, slots, positions, len(singles), lengths, keep)
        self.stats["steps"] += 1
        self._serve_waiters()
        return self._sample(ready, logits) if ready else []

    def _serve_waiters(self) -> None:
        """Copy shared prefixes that are computed by now; oldest first, so that chains of waiters resolve."""
        for slot, request in self._running.items():
            if request.waits_for is not None:
                source, expected = request.waits_for
                if self._table.computed[source] >= expected:
                    self._copy_for(slot, request, expected)

    def _copy_for(self, slot: int, request: Request, available: int) -> None:
        assert request.waits_for is not None
        source, expected = request.waits_for
        request.waits_for = None
        begin, end = int(self._table.computed[slot]), min(expected, available)
        if end > begin:
            self._decoder.copy_prefix(source, slot, begin, end)
            self._table.advance(slot, end)
            request.cached_tokens += end - begin
            self.stats["cached_tokens"] += end - begin
            self.stats["copied_tokens"] += end - begin

    def _sample(self, slots: list[int], logits: torch.Tensor) -> list[Answer]:
        requests = [self._running[slot] for slot in slots]
        entropies = self._config.entropies
        sampled = sample(
            logits,
            [request.sampling.temperature for request in requests],
            [request.draw for request in requests],
            entropies=entropies,
        )
        self.stats["decode_tokens"] += len(slots)
        answers: list[Answer] = []
        for i, (slot, request) in enumerate(zip(slots, requests, strict=True)):
            token_id = sampled.token_ids[i]
            entropy = sampled.entropies[i] if sampled.entropies is not None else 0.0
            length = request.length
            stop = request.accept(token_id, sampled.logprobs[i], entropy, self.version)
            if stop is None:
                self._table.append(slot, length, token_id)
                continue
            del self._running[slot]
            self._table.release(slot)
            answers.append((request, request.completion(stop, entropies=entropies)))
        return answers

"""A transformers causal LM that computes steps over slots, and takes new weights in place."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from transformers import AttentionInterface

from agent_rl.inference.kv_cache import SlotCache
from agent_rl.inference.slot_attention import ATTENTION, plan_step, slot_attention, unsupported
from agent_rl.types import Int32

_PROBE = 4  # tokens
_PROBE_TOLERANCE = 1e-2  # bfloat16 logits of an untrained model; a wrong mask or position is off by more


class Decoder:
    """The model and its cache. Not thread-safe: one thread calls it.

    Raises:
        ValueError: the model cannot run on slots (sliding windows, linear attention, an architecture that
            ignores transformers' attention interface).
    """

    def __init__(self, model: Any, *, max_slots: int, window: int) -> None:
        reason = unsupported(model.config)
        longest = getattr(model.config, "max_position_embeddings", None)
        if reason is None and longest is not None and window > longest:
            reason = f"it has {longest} positions and the window is {window}; set window={longest} or less"
        if reason is not None:
            raise ValueError(f"{type(model).__name__} cannot be decoded on slots: {reason}")
        self._model = model.eval().requires_grad_(False)
        self._cache = SlotCache(max_slots, window)
        # transformers renamed the argument in 5.2x; the old name warns.
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self.vocab = int(model.get_input_embeddings().weight.shape[0])
        self._half_loaded = False
        self._install()

    @property
    def cache_bytes(self) -> int:
        """Memory that keys and values take."""
        return self._cache.bytes

    def forward(
        self,
        token_ids: Int32,
        slots: Int32,
        positions: Int32,
        singles: int,
        lengths: list[int],
        keep: list[int],
    ) -> torch.Tensor:
        """Compute one step and store its keys and values.

        Args:
            token_ids: [N] tokens of all sequences, one after another.
            slots: [N] slot of every token.
            positions: [N] its position in its sequence.
            singles: how many sequences compute one token; they come first, slots ascending.
            lengths: tokens of each of the other sequences, in order.
            keep: rows whose logits are wanted.

        Returns:
            [len(keep), V] logits; no others are computed.
        """
        if self._half_loaded:
            raise RuntimeError(
                "loading weights failed half-way, so the model is a mixture; publish them again"
            )
        device = self._model.device
        self._cache.reserve(int(slots.max()) + 1, int(positions.max()) + 1)
        plan = plan_step(slots, positions, singles, lengths, device, self._model.dtype)
        self._cache.begin(plan)
        output = self._model(
            input_ids=torch.from_numpy(token_ids.astype(np.int64)).to(device)[None],
            position_ids=plan.positions[None],
            logits_to_keep=torch.tensor(keep, dtype=torch.int64, device=device),
            use_cache=True,
            slot_plan=plan,
            **{self._cache_argument: self._cache},
        )
        logits: torch.Tensor = output.logits[0]
        return logits

    def copy_prefix(self, source: int, target: int, begin: int, end: int) -> None:
        """Copy keys and values of positions `begin:end` between slots."""
        self._cache.copy(source, target, begin, end)

    def clear(self) -> None:
        """Drop every key and value."""
        self._cache.clear()

    def load(self, tensors: Mapping[str, Any]) -> None:
        """Replace all weights in place; tied weights may be given under either name.

        Raises:
            ValueError: names are missing or unknown, or a shape differs. Nothing was changed then.
        """
        own: dict[str, torch.Tensor] = self._model.state_dict(keep_vars=True)
        new = {name: torch.as_tensor(tensor) for name, tensor in tensors.items()}
        _check_names(own, new)
        self._half_loaded = True
        with torch.no_grad():
            for name, tensor in new.items():
                own[name].copy_(tensor)
        self._half_loaded = False

    def _install(self) -> None:
        """Switch the model's attention to slots, and verify on a few tokens that nothing else changed."""
        ids = np.arange(_PROBE, dtype=np.int32) % self.vocab
        with torch.inference_mode():
            device = self._model.device
            plain = self._model(input_ids=torch.from_numpy(ids.astype(np.int64)).to(device)[None]).logits[0]
            # Another model may share this configuration object and must keep its own attention.
            shared = self._model.config
            own = copy.deepcopy(shared)
            for module in self._model.modules():
                if getattr(module, "config", None) is shared:
                    module.config = own
            AttentionInterface.register(ATTENTION, slot_attention)
            own._attn_implementation = ATTENTION
            # The prefix as a chunk, then one token that reads it: both ways a step can go.
            positions = np.arange(_PROBE, dtype=np.int32)
            slots = np.zeros(_PROBE, dtype=np.int32)
            head = self.forward(ids[:-1], slots[:-1], positions[:-1], 0, [_PROBE - 1], [0, 1, 2])
            tail = self.forward(ids[-1:], slots[-1:], positions[-1:], 1, [], [0])
            error = float((torch.cat([head, tail]).float() - plain.float()).abs().max())
        self.clear()
        scale = max(1.0, float(plain.abs().max()))
        if not error <= _PROBE_TOLERANCE * scale:
            raise ValueError(
                f"{type(self._model).__name__} cannot be decoded on slots: its logits change by {error:.3g} "
                "when attention goes through transformers' attention interface"
            )


def _check_names(own: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]) -> None:
    unknown = sorted(set(tensors) - set(own))
    if unknown:
        raise ValueError(f"weights that the model does not have: {', '.join(unknown)}")
    given: dict[int, str] = {}
    for name, tensor in tensors.items():
        if tuple(tensor.shape) != tuple(own[name].shape):
            raise ValueError(
                f"weight {name} has shape {tuple(tensor.shape)}; the model's is {tuple(own[name].shape)}"
            )
        twin = given.setdefault(id(own[name]), name)
        if twin != name and not torch.equal(tensor, tensors[twin]):
            raise ValueError(f"weights {twin} and {name} are one tensor in the model and differ; give one")
    # Buffers may be left out: an optimiser does not change them.
    missing = sorted(n for n, t in own.items() if isinstance(t, torch.nn.Parameter) and id(t) not in given)
    if missing:
        raise ValueError(f"weights that were not given: {', '.join(missing)}; publish all of them")

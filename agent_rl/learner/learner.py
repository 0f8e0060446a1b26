"""The learner: holds weights and optimiser, scores forests and takes optimiser steps on batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agent_rl import batching
from agent_rl.learner import checkpoint
from agent_rl.learner.annotate import node_logprobs, rows_to_score
from agent_rl.learner.config import LearnerConfig
from agent_rl.learner.score import score_pack
from agent_rl.learner.support import prepare
from agent_rl.types import AnnotationName, Annotations, Batch, Credits, Forest, Pack
from agent_rl.types.node import Float32
from agent_rl.types.seams import LossInputs, PolicyLoss

SCORES = ("proximal_logprobs", "reference_logprobs")
"""Annotations that `score` computes."""


class Learner:
    """One policy's weights and how they are trained.

    `version` counts the optimiser steps that changed the weights; a step with a gradient that is not finite is
    skipped and counted in `skipped_steps`. The model stays in evaluation mode (no dropout), so that scores,
    samples and gradients are of one distribution.
    """

    def __init__(
        self, model: Any, config: LearnerConfig, loss: PolicyLoss, *, reference_model: Any | None = None
    ) -> None:
        """Take over `model` (a transformers causal language model): its precision, mode and attention are set.

        Args:
            model: trained in place; parameters that require no gradient stay frozen.
            config: optimiser, precision and token budget.
            loss: the policy loss.
            reference_model: frozen; needed when `reference_logprobs` are asked for.

        Raises:
            UnsupportedModelError: prefix sharing would change what the model computes.
            ValueError: no parameter requires a gradient.
        """
        self.model, self.config, self.loss = model, config, loss
        self.reference_model = reference_model
        self.version = 0
        self.skipped_steps = 0
        dtype = torch.float64 if config.dtype == "float64" else torch.float32
        model.to(dtype).eval()
        prepare(model)
        if reference_model is not None:
            reference_model.to(dtype).eval().requires_grad_(False)
            prepare(reference_model)
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        if not self._parameters:
            raise ValueError("a learner trains at least one parameter, but all are frozen: unfreeze some")
        self._optimizer = torch.optim.AdamW(
            self._parameters,
            lr=config.learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=True,  # one pass over the weights: three times faster than the default on CPU
        )

    def score(
        self,
        forest: Forest,
        names: Collection[AnnotationName],
        *,
        policy: str = "main",
        nodes: Collection[str] | None = None,
    ) -> Annotations:
        """Log-probabilities of the sampled action tokens at the weights as they are now.

        Args:
            forest: what was collected.
            names: of `proximal_logprobs` (this model) and `reference_logprobs`; none gives empty annotations.
            policy: whose nodes are scored.
            nodes: only these; None scores all, discarded actions included.

        Raises:
            ValueError: a name that the learner cannot compute, or no reference model.
        """
        unknown = set(names) - set(SCORES)
        if unknown:
            raise ValueError(
                f"the learner scores {' and '.join(SCORES)}, but {', '.join(sorted(unknown))} was asked for: "
                "choose an estimator and a loss that do not need it"
            )
        if "reference_logprobs" in names and self.reference_model is None:
            raise ValueError("reference_logprobs need a reference model: give the learner `reference_model`")
        if not names:
            return Annotations()
        credits = rows_to_score(forest, policy, nodes)
        arrays: dict[str, dict[str, Float32]] = {}
        for name in names:
            model = self.model if name == "proximal_logprobs" else self.reference_model
            score = partial(self._frozen, model)
            arrays[name] = node_logprobs(forest, credits, policy, self.config.token_budget, score)
        return Annotations(arrays, self.version if "proximal_logprobs" in names else None)

    def _frozen(self, model: Any, pack: Pack) -> Float32:
        with torch.no_grad(), self._precision():
            values = score_pack(model, pack).logprobs
        return values.float().cpu().numpy().astype(np.float32)

    def update(
        self, forest: Forest, credits: Credits, annotations: Annotations, *, policy: str = "main"
    ) -> dict[str, float]:
        """Train on credits: `passes` times over `mini_batches` optimiser steps each.

        Returns:
            The metrics of `step`, averaged over the steps; `steps` is their number.
        """
        sums: Counter[str] = Counter()
        steps = 0
        for _ in range(self.config.passes):
            for part in batching.split(credits, self.config.mini_batches):
                batch = batching.build(
                    forest, part, annotations, policy=policy, token_budget=self.config.token_budget
                )
                sums.update(self.step(batch))
                steps += 1
        return {**{name: value / steps for name, value in sums.items()}, "steps": float(steps)}

    def step(self, batch: Batch) -> dict[str, float]:
        """One optimiser step: gradients accumulated over the packs, clipped, applied by AdamW.

        Returns:
            `loss`, `grad_norm` (before clipping), `entropy` (nats per token), `learning_rate`, `skipped` (1 if
            the gradient was not finite, or nothing had one), `tokens` (loss tokens), `trie_ratio`
            (tokens computed per token of the unmerged rows), `tokens_per_s` (unmerged tokens), `staleness`
            (versions since sampling), and the metrics of the loss per token.
        """
        started = time.perf_counter()
        rate = self._learning_rate()
        metrics = {"learning_rate": rate, "skipped": 1.0, "tokens": float(batch.tokens), "grad_norm": 0.0}
        if not batch.tokens:
            return {**metrics, "loss": 0.0}
        self._optimizer.zero_grad(set_to_none=True)
        metrics.update(self.accumulate(batch))
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.config.max_grad_norm)
        metrics["grad_norm"] = float(norm)
        if norm == 0:
            pass  # without a signal, momentum alone must not move the weights
        elif torch.isfinite(norm):
            for group in self._optimizer.param_groups:
                group["lr"] = rate
            self._optimizer.step()
            self.version += 1
            metrics["skipped"] = 0.0
        else:
            self.skipped_steps += 1
        self._optimizer.zero_grad(set_to_none=True)
        metrics["trie_ratio"] = batch.trie_tokens / batch.row_tokens
        metrics["tokens_per_s"] = batch.row_tokens / (time.perf_counter() - started)
        return metrics

    def accumulate(self, batch: Batch) -> dict[str, float]:
        """Add the gradient of a batch to the parameters, pack by pack; returns loss and metrics per token."""
        sums: Counter[str] = Counter()
        loss_sum = 0.0
        for pack in batch.packs:
            with self._precision():
                scored = score_pack(self.model, pack, entropy=True)
            loss, metrics = self.loss.loss(scored.logprobs, self._inputs(batch, pack, scored.logprobs))
            loss.backward()
            loss_sum += float(loss.detach())
            sums.update(metrics)
            sums.update({"entropy": scored.entropy, "staleness": self._staleness(pack)})
        return {"loss": loss_sum, **{name: value / batch.tokens for name, value in sums.items()}}

    def _inputs(self, batch: Batch, pack: Pack, like: Tensor) -> LossInputs:
        def column(values: Float32) -> Tensor:
            return torch.from_numpy(values).to(like)

        sampled = column(pack.sampled_logprobs)
        reference = pack.reference_logprobs
        return LossInputs(
            advantages=column(pack.advantages),
            weights=column(pack.weights),
            sampled_logprobs=sampled,
            proximal_logprobs=sampled if pack.proximal_logprobs is None else column(pack.proximal_logprobs),
            reference_logprobs=None if reference is None else column(reference),
            sequence_ids=torch.from_numpy(pack.sequences).to(like.device),
            sequence_tokens=torch.from_numpy(batch.sequence_tokens).to(like.device),
            tokens=batch.tokens,
            sequences=batch.sequences,
        )

    def _staleness(self, pack: Pack) -> float:
        sampled = pack.versions >= 0
        return float((self.version - pack.versions[sampled]).sum())

    def _learning_rate(self) -> float:
        """Linear rise over `warmup_steps`, then constant or a linear fall to 0 at `total_steps`."""
        done, config = self.version, self.config
        rise = min(1.0, (done + 1) / config.warmup_steps) if config.warmup_steps else 1.0
        fall = max(0.0, 1 - done / config.total_steps) if config.total_steps else 1.0
        return config.learning_rate * min(rise, fall)

    def _precision(self) -> AbstractContextManager[Any]:
        enabled = self.config.dtype == "bfloat16"
        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=enabled)

    def weights(self) -> Mapping[str, Tensor]:
        """The tensors of the model by name, live: the next step changes them, so copy what is to last."""
        return {name: tensor.detach() for name, tensor in self.model.state_dict().items()}

    def save(self, folder: str | Path) -> None:
        """Write weights (as a transformers model), optimiser, generators and version; whole or not at all.

        Raises:
            OSError: the disk is full or not writable; an older checkpoint at `folder` is intact.
        """
        state = {
            "optimizer": self._optimizer.state_dict(),
            "version": self.version,
            "skipped_steps": self.skipped_steps,
        }
        checkpoint.save(Path(folder), self.model, state)

    def load(self, folder: str | Path) -> None:
        """Continue from `save`: the next step is the one that would have followed.

        Raises:
            FileNotFoundError: there is no checkpoint.
            ValueError: the checkpoint is of another model.
        """
        state = checkpoint.load(Path(folder), self.model)
        self._optimizer.load_state_dict(state["optimizer"])
        self.version, self.skipped_steps = int(state["version"]), int(state["skipped_steps"])

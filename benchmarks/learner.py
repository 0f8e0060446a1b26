"""One optimiser update over the prefix trie against the same rows unmerged: time ratio, and the bound on it.

    python benchmarks/learner.py [--hidden 256] [--layers 4] [--repeats 3] [--budget 8192] [--seed 0]

The same rows three ways: `trie`; `unmerged`, the same code with a root for every chain; `stacked`, what a plain
trainer does: chains padded to one causal batch. The time ratio is against the faster of the two. The bound is the
ratio of tokens: what is left when only the matrix products count.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agent_rl import batching
from agent_rl.credit import CreditConfig
from agent_rl.credit import make as make_estimator
from agent_rl.learner import Learner, LearnerConfig
from agent_rl.losses import LossConfig
from agent_rl.losses import make as make_loss
from agent_rl.types import Annotations, Batch, Episode, Forest, Node, Turn
from envs.types import RewardComponent

VOCABULARY = 4096


class Builder:
    """Forests of random tokens."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: dict[str, Node] = {}
        self.turns: dict[str, Turn] = {}
        self.episodes: list[Episode] = []

    def node(self, kind, length: int, parent: str | None = None, start: np.ndarray | None = None) -> str:
        fresh = self.rng.integers(0, VOCABULARY, length).astype(np.int32)
        tokens = fresh if start is None else np.concatenate([start, fresh])
        action = kind == "action"
        node = Node(
            id=f"n{len(self.nodes)}",
            parent=parent,
            at=0 if parent is None else len(self.nodes[parent]),
            kind=kind,
            token_ids=tokens,
            sampled_logprobs=np.full(len(tokens), -8.3, np.float32) if action else None,
            versions=np.zeros(len(tokens), np.int32) if action else None,
        )
        self.nodes[node.id] = node
        return node.id

    def turn(self, parent: str, action: int, observation: int) -> tuple[str, str]:
        """Turn id and the node that the next turn follows."""
        acted = self.node("action", action, parent)
        seen = self.node("observation", observation, acted) if observation else None
        turn = Turn(id=f"t{len(self.turns)}", action=acted, observation=seen)
        self.turns[turn.id] = turn
        return turn.id, seen or acted

    def episode(self, turns: list[str], leaves: list[str]) -> None:
        i = len(self.episodes)
        reward = (RewardComponent(name="outcome", value=float(i % 2)),)
        fields = {"id": f"e{i}", "task_id": "t", "group_id": "g", "sample": i, "rewards": reward}
        self.episodes.append(Episode(**fields, turns=tuple(turns), leaves=tuple(leaves)))

    def forest(self) -> Forest:
        return Forest(self.nodes, self.turns, tuple(self.episodes))


def group(seed: int) -> Forest:
    """Eight answers of 80 tokens to a prompt of 400."""
    b = Builder(seed)
    root = b.node("prompt", 400)
    for _ in range(8):
        turn, leaf = b.turn(root, 80, 0)
        b.episode([turn], [leaf])
    return b.forest()


def tree(seed: int) -> Forest:
    """Depth 3, fan-out 3: 27 leaves, turns of 60 tokens answered by 40, after a prompt of 400."""
    b = Builder(seed)

    def grow(parent: str, turns: list[str], depth: int) -> None:
        for _ in range(3):
            turn, node = b.turn(parent, 60, 40 if depth < 3 else 0)
            if depth < 3:
                grow(node, [*turns, turn], depth + 1)
            else:
                b.episode([*turns, turn], [node])

    grow(b.node("prompt", 400), [], 1)
    return b.forest()


def summaries(seed: int) -> Forest:
    """Four episodes of four turns, a summary of 60 tokens after each of the first three, a prompt of 300."""
    b = Builder(seed)
    prompt = b.node("prompt", 300)
    for _ in range(4):
        start, turns, leaves = prompt, [], []
        for k in range(4):
            turn, node = b.turn(start, 80, 60 if k < 3 else 0)
            turns.append(turn)
            if k == 3:
                leaves.append(node)
                break
            turn, summary = b.turn(node, 60, 0)
            turns.append(turn)
            leaves.append(summary)
            tokens = np.concatenate([b.nodes[prompt].token_ids, b.nodes[summary].token_ids])
            start = b.node("prompt", 4, None, tokens)
        b.episode(turns, leaves)
    return b.forest()


def measure(updates: list[Callable[[], object]], repeats: int, clock: Callable[[], float]) -> list[float]:
    """Least seconds of each update, taken in turn so that a busy moment does not favour one."""
    times: list[list[float]] = [[] for _ in updates]
    for _ in range(repeats + 1):
        for update, found in zip(updates, times, strict=True):
            started = clock()
            update()
            found.append(clock() - started)
    return [min(found[1:]) for found in times]


def stacked(model: LlamaForCausalLM, plain: Batch, budget: int) -> Callable[[], None]:
    """A plain update: chains padded to rows of one length, as many rows at once as the budget allows."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    chains = []
    for pack in plain.packs:
        starts = np.flatnonzero(pack.positions == 0)
        for start, end in zip(starts, np.append(starts[1:], pack.size), strict=True):
            mine = (pack.predict_from >= start) & (pack.predict_from < end)
            fields = (pack.predict_from - start, pack.labels, pack.advantages)
            chains.append((pack.token_ids[start:end], *(f[mine] for f in fields)))
    rows = max(1, budget // max(len(c[0]) for c in chains))

    def update() -> None:
        optimizer.zero_grad(set_to_none=True)
        for i in range(0, len(chains), rows):
            part = chains[i : i + rows]
            width = max(len(c[0]) for c in part)
            tokens = torch.from_numpy(np.stack([np.pad(c[0], (0, width - len(c[0]))) for c in part]))
            hidden = model.base_model(input_ids=tokens, use_cache=False).last_hidden_state.flatten(0, 1)
            places = torch.from_numpy(np.concatenate([r * width + c[1] for r, c in enumerate(part)]))
            labels, advantages = (torch.from_numpy(np.concatenate([c[k] for c in part])) for k in (2, 3))
            logits = model.get_output_embeddings()(hidden[places])
            logprobs = logits.gather(1, labels[:, None])[:, 0] - logits.logsumexp(-1)
            (-(advantages * logprobs).sum() / plain.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return update


def gradient(learner: Learner, batch: Batch) -> torch.Tensor:
    learner.model.zero_grad(set_to_none=True)
    learner.accumulate(batch)
    return torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in [("hidden", 256), ("layers", 4), ("repeats", 3), ("budget", 8192), ("seed", 0)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--cpu-time", action="store_true", help="CPU seconds, for a machine with other work")
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    torch.manual_seed(options.seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=options.hidden,
        intermediate_size=options.hidden * 3,
        num_hidden_layers=options.layers,
        num_attention_heads=max(1, options.hidden // 64),
        num_key_value_heads=max(1, options.hidden // 64),
        max_position_embeddings=2048,
    )
    learner = Learner(LlamaForCausalLM(config), LearnerConfig(learning_rate=1e-6), make_loss(LossConfig()))
    millions = sum(p.numel() for p in learner.model.parameters()) / 1e6
    print(
        f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}; Llama {millions:.1f}M, "
        f"budget {options.budget}, seed {options.seed}, least of {options.repeats}"
    )
    print(
        f"{'':<12}{'unmerged':>10}{'trie':>8}{'bound':>8}{'time ratio':>12}{'':>8}"
        f"{'trie s':>10}{'unmerged':>10}{'stacked':>10}{'gradient':>12}"
    )
    cases: dict[str, Callable[[int], Forest]] = {"group": group, "tree": tree, "summaries": summaries}
    for name, make in cases.items():
        forest = make(options.seed)
        credits = make_estimator(CreditConfig()).credit(forest, Annotations())
        merged = batching.build(forest, credits, Annotations(), token_budget=options.budget)
        plain = batching.unmerged(forest, credits, Annotations(), token_budget=options.budget)
        expected, found = gradient(learner, plain), gradient(learner, merged)
        gap = float((found - expected).abs().max() / expected.abs().max())
        plain_update = stacked(learner.model, plain, options.budget)
        trie_s, unmerged_s, stacked_s = measure(
            [partial(learner.step, merged), partial(learner.step, plain), plain_update],
            options.repeats,
            clock,
        )
        bound, ratio = plain.trie_tokens / merged.trie_tokens, min(unmerged_s, stacked_s) / trie_s
        print(
            f"{name:<12}{plain.trie_tokens:>10}{merged.trie_tokens:>8}{bound:>7.2f}x{ratio:>11.2f}x"
            f"{ratio / bound:>8.0%}{trie_s:>10.2f}{unmerged_s:>10.2f}{stacked_s:>10.2f}{gap:>12.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()

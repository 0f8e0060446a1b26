"""Build small forests by hand, or draw random ones of every shape that a collection can have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_rl.types import CreditRow, Credits, Episode, Forest, Node, Turn
from envs.types import RewardComponent


class ForestBuilder:
    """Collects nodes, turns and episodes; ids are n0, t0, e0 in order of creation."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: dict[str, Node] = {}
        self.turns: dict[str, Turn] = {}
        self.episodes: list[Episode] = []

    def prompt(self, tokens: Sequence[int]) -> str:
        return self._node(None, None, "prompt", tokens)

    def observation(self, parent: str, tokens: Sequence[int], at: int | None = None) -> str:
        return self._node(parent, at, "observation", tokens)

    def action(
        self,
        parent: str | None,
        tokens: Sequence[int],
        at: int | None = None,
        *,
        logprobs: Sequence[float] | None = None,
        demonstration: bool = False,
        temperature: float = 1.0,
        policy: str = "main",
    ) -> str:
        drawn = -self.rng.uniform(2.0, 4.5, len(tokens)) if logprobs is None else logprobs
        return self._node(
            parent,
            at,
            "action",
            tokens,
            sampled_logprobs=None if demonstration else np.asarray(drawn, np.float32),
            versions=None if demonstration else np.zeros(len(tokens), np.int32),
            temperature=temperature,
            policy=policy,
        )

    def _node(self, parent: str | None, at: int | None, kind, tokens: Sequence[int], **fields) -> str:
        name = f"n{len(self.nodes)}"
        if at is None:
            at = 0 if parent is None else len(self.nodes[parent])
        token_ids = np.asarray(tokens, np.int32)
        self.nodes[name] = Node(id=name, parent=parent, at=at, kind=kind, token_ids=token_ids, **fields)
        return name

    def turn(self, action: str, observation: str | None = None, *, reward: float = 0.0, **fields) -> str:
        name = f"t{len(self.turns)}"
        rewards = (RewardComponent(name="turn", value=reward, scope="turn"),) if reward else ()
        self.turns[name] = Turn(id=name, action=action, observation=observation, rewards=rewards, **fields)
        return name

    def episode(
        self,
        turns: Sequence[str],
        *,
        reward: float = 0.0,
        group: str = "g",
        leaves: Sequence[str] | None = None,
        **fields,
    ) -> str:
        name = f"e{len(self.episodes)}"
        episode = Episode(
            id=name,
            task_id=f"task-{group}",
            group_id=group,
            sample=sum(e.group_id == group for e in self.episodes),
            turns=tuple(turns),
            leaves=(self.turns[turns[-1]].action,) if leaves is None else tuple(leaves),
            rewards=(RewardComponent(name="outcome", value=reward),),
            terminated=True,
            **fields,
        )
        self.episodes.append(episode)
        return name

    def forest(self) -> Forest:
        return Forest(dict(self.nodes), dict(self.turns), tuple(self.episodes))

    def flat(self, rewards: Sequence[float], group: str = "g", **fields) -> None:
        """One-turn episodes that share a prompt."""
        root = self.prompt([1, 2])
        for i, reward in enumerate(rewards):
            self.episode([self.turn(self.action(root, [3, i + 4]))], reward=reward, group=group, **fields)


def advantages(credits: Credits) -> dict[str, set[float]]:
    """Rounded advantages of each episode's rows."""
    found: dict[str, set[float]] = {}
    for row in credits:
        found.setdefault(row.episode, set()).add(round(row.advantage, 6))
    return found


def random_forest(seed: int, vocabulary: int = 17) -> Forest:
    """Groups, chains with summaries, branches after and inside turns, discarded turns, demonstrations."""
    b = ForestBuilder(seed)
    rng = b.rng

    def draw(low: int = 1, high: int = 5) -> list[int]:
        # Few symbols, so that unrelated chains often begin alike.
        return [
            int(t) for t in rng.integers(0, vocabulary if rng.random() < 0.5 else 3, rng.integers(low, high))
        ]

    def act(parent: str, at: int | None = None) -> str:
        temperature = float(rng.choice([1.0, 0.7]))
        return b.action(parent, draw(), at, temperature=temperature, demonstration=rng.random() < 0.1)

    for g in range(int(rng.integers(1, 4))):
        root = b.prompt(draw(2, 6))
        points: list[tuple[tuple[str, ...], str, int]] = [((), root, len(b.nodes[root]))]
        for _ in range(int(rng.integers(1, 5))):
            turns_before, node, at = points[int(rng.integers(len(points)))]
            turns, leaves = list(turns_before), []
            for k in range(int(rng.integers(1, 4))):
                action = act(node, at)
                cut = int(rng.integers(0, len(b.nodes[action]) + 1))
                points.append((tuple(turns), action, cut))
                observation = b.observation(action, draw())
                turns.append(b.turn(action, observation, state_key=str(rng.integers(3))))
                points.append((tuple(turns), observation, len(b.nodes[observation])))
                node, at = observation, len(b.nodes[observation])
                if k and rng.random() < 0.3:  # a summary: the chain ends and a new root opens
                    summary = act(b.observation(node, draw(), int(rng.integers(0, at + 1))))
                    turns.append(b.turn(summary, kind="context"))
                    leaves.append(summary)
                    node = b.prompt([*b.nodes[root].token_ids.tolist(), *b.nodes[summary].token_ids.tolist()])
                    at = len(b.nodes[node])
            last = act(node, at)
            turns.append(b.turn(last))
            leaves.append(last)
            b.episode(turns, leaves=leaves, group=f"g{g}", reward=float(rng.integers(0, 2)))
    return b.forest()


def random_credits(forest: Forest, seed: int) -> Credits:
    """Rows on random spans of random chains; masks are gaps between rows, some nodes have several rows."""
    rng = np.random.default_rng(seed)
    rows: list[CreditRow] = []
    for episode in forest.episodes:
        for leaf in episode.leaves:
            for span in forest.actions(leaf):
                for _ in range(int(rng.integers(0, 3))):
                    start, end = sorted(int(x) for x in rng.integers(0, span.end + 1, 2))
                    weight = float(rng.choice([1.0, 0.5]))
                    advantage = float(rng.normal())
                    rows.append(CreditRow(span.node, start, end, advantage, weight, episode.id, leaf))
    return Credits.of(rows)

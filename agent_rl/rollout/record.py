"""The growing forest of one group: nodes, turns and episodes as they happen, and points to continue from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from agent_rl.rollout.policy import Action
from agent_rl.types import Episode, Forest, Node, Turn
from agent_rl.types.node import Int32
from envs.types import RewardComponent, Snapshot
from tools.types import Message

MAX_SNAPSHOTS = 256
"""Most snapshots of one group; later turns are not branched from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Point:
    """Where an episode stands between two actions; another episode can continue from here.

    `node` and `at` name the end of the state's tokens. `snapshot` is None at the root, where a reset serves.
    """

    node: str
    at: int
    messages: tuple[Message, ...]
    """Messages of the current chain."""
    state_key: str
    turns: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    """Leaves of the chains that were closed."""
    rewrites: int = 0
    calls: int = 0
    """Tool calls so far; makes call ids unique within the episode."""
    rewards: tuple[RewardComponent, ...] = ()
    """Components of scope `episode` that were given so far."""
    snapshot: Snapshot | None = None


@dataclass(slots=True)
class GroupRecord:
    """Everything that one group brought; episodes write into it and `forest()` freezes it."""

    group_id: str
    nodes: dict[str, Node] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    episodes: dict[int, Episode] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)
    """By the node that ends the state."""

    def forest(self) -> Forest:
        """What stands so far, episodes by sample."""
        return Forest(
            dict(self.nodes), dict(self.turns), tuple(self.episodes[s] for s in sorted(self.episodes))
        )

    def context(self, node_id: str, kind: str, token_ids: Int32, parent: str | None, at: int) -> Node:
        """Add tokens that the policy did not produce: a prompt or an observation."""
        node = Node(
            id=node_id,
            parent=parent,
            at=at,
            kind="prompt" if kind == "prompt" else "observation",
            token_ids=token_ids.astype(np.int32),
        )
        self.nodes[node_id] = node
        return node

    def action(self, node_id: str, action: Action, parent: str, at: int) -> Node:
        """Add an action exactly as it was sampled."""
        node = Node(
            id=node_id,
            parent=parent,
            at=at,
            kind="action",
            token_ids=action.token_ids.astype(np.int32),
            sampled_logprobs=action.logprobs,
            versions=action.versions,
            temperature=action.temperature,
            entropies=action.entropies,
        )
        self.nodes[node_id] = node
        return node

    def tokens(self, node: str, at: int) -> Int32:
        """Tokens from the root to the first `at` tokens of `node`."""
        parts: list[Int32] = []
        current: str | None = node
        while current is not None:
            here = self.nodes[current]
            parts.append(here.token_ids[:at])
            current, at = here.parent, here.at
        return np.concatenate(parts[::-1]) if parts else np.zeros(0, np.int32)

    def length(self, node: str, at: int) -> int:
        """How many tokens `tokens` would return."""
        total, current = 0, node
        while True:
            here = self.nodes[current]
            total += at
            if here.parent is None:
                return total
            current, at = here.parent, here.at

    def find(self, node: str, at: int) -> tuple[Point, Int32]:
        """The point from which to continue `node` after `at` tokens, and what is already said of its action.

        Raises:
            KeyError: no episode passed there with a snapshot: the turn was discarded, or the group was full.
        """
        said: list[Int32] = []
        here = self.nodes[node]
        while here.kind == "action":
            said.append(here.token_ids[:at])
            if here.parent is None:
                raise KeyError(f"action node {here.id!r} has no parent")
            at, here = here.at, self.nodes[here.parent]
        point = self.points[here.id]
        if at != point.at:
            raise KeyError(f"node {here.id!r} is continued after {point.at} tokens, not after {at}")
        spoken = np.concatenate(said[::-1]) if said else np.zeros(0, np.int32)
        return point, spoken

    def forget(self, episode_id: str) -> list[Snapshot]:
        """Drop what a failed attempt left, so that its retry starts clean; returns what is to be released."""
        prefix = f"{episode_id}:"
        self.nodes = {k: n for k, n in self.nodes.items() if not k.startswith(prefix)}
        self.turns = {k: t for k, t in self.turns.items() if not k.startswith(prefix)}
        return self.drop_points(prefix)

    def drop_points(self, prefix: str = "") -> list[Snapshot]:
        """Drop the points at nodes that begin with `prefix`; returns their snapshots, to be released."""
        dropped = [self.points.pop(node) for node in list(self.points) if node.startswith(prefix)]
        return [point.snapshot for point in dropped if point.snapshot is not None]

    @property
    def full(self) -> bool:
        """Whether the group holds as many snapshots as it may."""
        return len(self.points) > MAX_SNAPSHOTS


def number_calls(message: Message, first: int) -> Message:
    """The same message with call ids that are unique within the episode: `call_<first>`, ..."""
    if "tool_calls" not in message:
        return message
    calls = [{**call, "id": f"call_{first + i}"} for i, call in enumerate(message["tool_calls"])]
    return {**message, "tool_calls": calls}  # type: ignore[typeddict-item]

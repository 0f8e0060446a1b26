"""Which tokens of an episode are trained, and what the episode returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent_rl.types import CreditRow, Episode, Forest
from agent_rl.types.forest import Span


def training(forest: Forest) -> list[Episode]:
    """Episodes collected for training; those grown for values or evaluation are left out."""
    return [e for e in forest.episodes if e.purpose == "train"]


def total_return(forest: Forest, episode: Episode) -> float:
    """Episode reward plus all turn rewards, undiscounted."""
    return episode.reward + sum(forest.turn_rewards(episode))


def action_spans(forest: Forest, episode: Episode) -> Iterator[tuple[Span, str]]:
    """Every action token of an episode once, as (span, leaf of the first chain that holds it).

    Prefixes shared with other episodes are included: each episode trains its own copy. Actions that a context
    rewrite discarded lie on no chain and do not appear.
    """
    covered: dict[str, int] = {}
    for leaf in episode.leaves:
        for span in forest.actions(leaf):
            start = covered.get(span.node, 0)
            if span.end > start:
                covered[span.node] = span.end
                yield Span(span.node, start, span.end), leaf


def uniform_rows(forest: Forest, advantages: Mapping[str, float]) -> Iterator[CreditRow]:
    """Rows that give an episode's one advantage to all its action tokens; excluded episodes get none.

    Args:
        forest: the collection.
        advantages: by episode id; episodes not named get no rows.
    """
    for episode in forest.episodes:
        if episode.exclude_from_loss or episode.id not in advantages:
            continue
        for span, leaf in action_spans(forest, episode):
            yield CreditRow(span.node, span.start, span.end, advantages[episode.id], 1.0, episode.id, leaf)

"""GiGPO (arXiv 2505.10978): turns taken in the same state of the same task are compared with one another."""

from __future__ import annotations

from collections.abc import Iterator

from agent_rl.credit.baselines import normalise_within
from agent_rl.credit.config import CreditConfig
from agent_rl.credit.rows import action_spans, total_return, training
from agent_rl.types import AnnotationName, Annotations, CreditRow, Credits, Episode, Forest
from agent_rl.types.forest import Span


class Anchor:
    """Episode term over the group plus `step_weight` times an anchor term over equal states.

    The anchor term of a turn is its discounted return relative to those of all turns of the group with the
    same state key; a state met once says nothing. A state that one episode meets twice counts twice. Turns
    without a state key (a summary, as a rule) have no anchor term. A discarded turn is in the returns and in
    the statistics, and trains nothing.
    """

    def __init__(self, config: CreditConfig) -> None:
        self._config = config

    @property
    def needs(self) -> frozenset[AnnotationName]:
        """Nothing beyond the rewards."""
        return frozenset()

    def credit(self, forest: Forest, annotations: Annotations) -> Credits:
        """Rows per turn: all tokens of an action share episode term plus weighted anchor term."""
        episodes = training(forest)
        episode_terms = normalise_within(
            [e.group_id for e in episodes],
            [total_return(forest, e) for e in episodes],
            [not e.exclude_from_baseline for e in episodes],
            self._config,
        )
        step_terms = self._step_terms(forest, episodes)
        rows: list[CreditRow] = []
        for episode, term in zip(episodes, episode_terms, strict=True):
            if episode.exclude_from_loss:
                continue
            for span, leaf, turn in _with_turns(forest, episode):
                step = step_terms.get((episode.id, turn), 0.0)
                advantage = float(term) + self._config.step_weight * step
                rows.append(CreditRow(span.node, span.start, span.end, advantage, 1.0, episode.id, leaf))
        return Credits.of(rows)

    def _step_terms(self, forest: Forest, episodes: list[Episode]) -> dict[tuple[str, str | None], float]:
        """Anchor term by (episode id, turn id)."""
        owners: list[tuple[str, str | None]] = []
        keys: list[tuple[str, str]] = []
        returns: list[float] = []
        votes: list[bool] = []
        for episode in episodes:
            discounted = discounted_returns(forest, episode, self._config.gamma)
            for turn, value in zip(episode.turns, discounted, strict=True):
                if state := forest.turns[turn].state_key:
                    owners.append((episode.id, turn))
                    keys.append((episode.group_id, state))
                    returns.append(value)
                    votes.append(not episode.exclude_from_baseline)
        terms = normalise_within(keys, returns, votes, self._config)
        return {owner: float(t) for owner, t in zip(owners, terms, strict=True)}


def discounted_returns(forest: Forest, episode: Episode, gamma: float) -> list[float]:
    """Return from each turn on, in execution order; the episode reward falls on the last turn."""
    rewards = forest.turn_rewards(episode)
    running, returns = episode.reward, []
    for i in range(len(rewards) - 1, -1, -1):
        running = rewards[i] + (running if i == len(rewards) - 1 else gamma * running)
        returns.append(running)
    return returns[::-1]


def _with_turns(forest: Forest, episode: Episode) -> Iterator[tuple[Span, str, str | None]]:
    """Spans with the turn that each belongs to.

    The cut action before a branch inside a turn is no turn of this episode: it is the beginning of the next.
    """
    turn_of = {forest.turns[t].action: t for t in episode.turns}
    found: list[tuple[Span, str, str | None]] = []
    following: str | None = None
    for span, leaf in reversed(list(action_spans(forest, episode))):
        following = turn_of.get(span.node, following)
        found.append((span, leaf, following))
    return reversed(found)

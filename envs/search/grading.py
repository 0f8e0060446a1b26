"""How answers are compared: exact match, its substring variant, and F1, normalised as SQuAD and HotpotQA do."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from envs.types import Reward, RewardComponent

Metric = Literal["em", "sub_em", "f1"]
METRICS: tuple[Metric, ...] = get_args(Metric)
EXTRA_WORDS = 4
"""By how many words an answer may exceed a gold and still be paid for containing it."""
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
_CLOSED = frozenset({"yes", "no", "noanswer"})


def normalise(text: str) -> str:
    """Lower case, then no punctuation (it leaves no gap), then no articles, then single spaces."""
    bare = "".join(c for c in text.lower() if c not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """1 if the answer equals any gold after normalisation."""
    given = normalise(answer)
    return float(any(given == normalise(gold) for gold in golds))


def sub_exact_match(answer: str, golds: Iterable[str]) -> float:
    """1 if the answer contains any gold as a substring after normalisation (Search-R1's `subem_check`)."""
    given = normalise(answer)
    return float(any(normalise(gold) in given for gold in golds))


def f1(answer: str, golds: Iterable[str]) -> float:
    """Best overlap of word bags over the golds; 0 where one side is yes, no or noanswer and they differ."""
    return max((_f1(normalise(answer), normalise(gold)) for gold in golds), default=0.0)


def _f1(given: str, gold: str) -> float:
    if given != gold and (given in _CLOSED or gold in _CLOSED):
        return 0.0
    given_words, gold_words = given.split(), gold.split()
    common = sum((Counter(given_words) & Counter(gold_words)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(given_words), common / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def contains(text: str, golds: Iterable[str]) -> bool:
    """Whether a gold stands in the text as whole words, after normalisation."""
    padded = f" {normalise(text)} "
    return any(f" {normalise(gold)} " in padded for gold in golds)


def usable(golds: Iterable[str]) -> tuple[str, ...]:
    """The golds that normalisation leaves something of: an empty one would be in every answer."""
    return tuple(gold for gold in golds if normalise(gold))


def paid(answer: str, golds: Sequence[str], metric: Metric) -> float:
    """What an answer earns by a metric.

    `sub_em` pays for whole words only, and only for answers at most `EXTRA_WORDS` words longer than the gold: else
    a list of everything would be right.
    """
    if metric == "em":
        return exact_match(answer, golds)
    if metric == "f1":
        return f1(answer, golds)
    words = len(normalise(answer).split())
    short = [gold for gold in golds if words <= len(normalise(gold).split()) + EXTRA_WORDS]
    return float(contains(answer, short))


@dataclass(frozen=True, slots=True)
class FormatRewards:
    """What form is worth beside a right answer, as in Search-R1 v0.3; 0 everywhere pays answers alone.

    | answer | every call well-formed | evidence was shown | total |
    |---|---|---|---|
    | right | yes | | 1 |
    | right | no | | 1 - structure |
    | wrong | yes | yes | structure + retrieval |
    | wrong | yes | no | structure |
    | wrong | no | | final_format |

    None of it is paid when no answer was handed in.
    """

    structure: float = 0.0
    retrieval: float = 0.0
    final_format: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """What the environment itself saw of an episode; nothing of it is read from the model's text."""

    answer: str | None
    """None when none was handed in."""
    well_formed: bool
    """Every turn had calls, and every call was served."""
    retrieved: bool
    """A gold stood in what a tool showed of a document."""
    support: float
    """Share of the supporting documents that were shown."""


def grade(conduct: Conduct, golds: Sequence[str], metric: Metric, form: FormatRewards) -> Reward:
    """Named components: `correct` (weight 1), what `form` pays, and measures of weight 0."""
    answer = conduct.answer
    given = answer is not None and bool(normalise(answer))
    correct = paid(answer, golds, metric) if answer is not None and given else 0.0
    measures = {
        "em": exact_match(answer, golds) if answer is not None and given else 0.0,
        "sub_em": sub_exact_match(answer, golds) if answer is not None and given else 0.0,
        "f1": f1(answer, golds) if answer is not None and given else 0.0,
        "answered": float(given),
        "well_formed": float(conduct.well_formed),
        "retrieved": float(conduct.retrieved),
        "support": conduct.support,
    }
    judged = [RewardComponent(name="correct", value=correct)]
    judged += [RewardComponent(name=name, value=value, weight=0.0) for name, value in measures.items()]
    return Reward((*judged, *(_form(conduct, correct, form) if given else ())))


def _form(conduct: Conduct, correct: float, form: FormatRewards) -> Iterable[RewardComponent]:
    right, well = correct > 0, conduct.well_formed
    shares = {
        "structure": (form.structure, float(well and not right) - float(right and not well)),
        "retrieval": (form.retrieval, float(well and not right and conduct.retrieved)),
        "final_format": (form.final_format, float(not well and not right)),
    }
    for name, (weight, value) in shares.items():
        if weight:
            yield RewardComponent(name=name, value=value, weight=weight)

"""Generated corpora: things with random names, one page each, as a pure function of split, seed, level and number."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from envs.search.bm25 import Bm25
from envs.search.corpus import Corpus, Document
from envs.search.schema import FALSE, FILLER, INJECTION, KINDS, LEVELS, TRUE, Level, Role, roles_of
from envs.tasksets import split_of
from envs.types import Split

GENERATOR = 1
"""Raised whenever equal arguments give another corpus than before."""
SNIPPET_CHARS = 300
"""What a search result shows of a page."""
_CONSONANTS, _VOWELS, _ENDS = "bdfgklmnprstvz", "aeiou", ("", "n", "r", "s", "l", "k")
_CACHED = 64


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with a page."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A corpus, how to search it, and what is true in it."""

    corpus: Corpus
    retriever: Bm25
    pages: Mapping[Thing, Document]
    truth: Mapping[tuple[Thing, Role], Thing]
    lies: Mapping[tuple[Thing, Role], Thing]
    """Values that the page of a thing calls outdated or wrong."""
    said: Mapping[tuple[Thing, Role], str]
    """The word that a page uses for a role."""


@functools.lru_cache(maxsize=_CACHED)
def build(split: Split, seed: int, level: int, number: int) -> World:
    """The world of these arguments; the most recent ones are kept, and shared by all who ask."""
    rng = Random(f"search-v1/{GENERATOR}/{split}/{seed}/{level}/{number}")
    shape = LEVELS[level]
    things = _things(rng, split, shape.per_kind)
    truth: dict[tuple[Thing, Role], Thing] = {}
    lies: dict[tuple[Thing, Role], Thing] = {}
    said: dict[tuple[Thing, Role], str] = {}
    for thing in things:
        for role in roles_of(thing.kind):
            values = [t for t in things if t.kind == role.target and t != thing]
            rng.shuffle(values)
            truth[thing, role] = values[0]
            said[thing, role] = rng.choice(role.words)
            if len(values) > 1 and rng.random() < shape.false_share:
                lies[thing, role] = values[1]
    texts = {t: _page(rng, t, things, shape, truth, lies, said) for t in things}
    order = list(things)
    rng.shuffle(order)  # neither id nor place tells what a page is about
    pages = {t: Document(f"d{i}", t.name, texts[t]) for i, t in enumerate(order)}
    corpus = Corpus(pages.values())
    return World(corpus=corpus, retriever=Bm25(corpus), pages=pages, truth=truth, lies=lies, said=said)


def _things(rng: Random, split: Split, per_kind: int) -> list[Thing]:
    """Things whose names share words, so that a word alone finds several pages."""
    words = _words(rng, split, per_kind + 4)
    things = []
    for kind, form in KINDS.items():
        names: dict[str, None] = {}
        while len(names) < per_kind:
            a, b = rng.sample(words, 2)
            names[form.format(a=a, b=b)] = None
        things += [Thing(name, kind) for name in names]
    return things


def _words(rng: Random, split: Split, n: int) -> list[str]:
    """Words that belong to one split each."""
    found: dict[str, None] = {}
    while len(found) < n:
        syllables = [rng.choice(_CONSONANTS) + rng.choice(_VOWELS) for _ in range(rng.choice((2, 2, 3)))]
        word = "".join(syllables) + rng.choice(_ENDS)
        if split_of(word) == split:
            found[word.capitalize()] = None
    return list(found)


def _page(
    rng: Random,
    thing: Thing,
    things: list[Thing],
    shape: Level,
    truth: Mapping[tuple[Thing, Role], Thing],
    lies: Mapping[tuple[Thing, Role], Thing],
    said: Mapping[tuple[Thing, Role], str],
) -> str:
    facts = []
    for role in roles_of(thing.kind):
        word = said[thing, role]
        facts.append(rng.choice(TRUE).format(role=word, thing=thing.name, value=truth[thing, role].name))
        if (thing, role) in lies:
            lie = lies[thing, role].name
            facts.append(rng.choice(FALSE).format(role=word, value=lie, year=rng.randint(1700, 1990)))
    first = f"{thing.name} is a {thing.kind}."
    if not shape.opens:
        return " ".join([first, *facts])
    if rng.random() < shape.injections:
        facts.append(rng.choice(INJECTION).format(value=rng.choice(things).name))
    facts += list(_filler(rng, 4))
    rng.shuffle(facts)
    opening = [first, *_filler(rng, 7)]
    while len(" ".join(opening)) < SNIPPET_CHARS:
        opening += _filler(rng, 1)
    return " ".join(opening) + "\n" + " ".join(facts)


def _filler(rng: Random, n: int) -> Iterator[str]:
    for sentence in rng.sample(FILLER, n):
        yield sentence.format(year=rng.randint(1700, 1990))

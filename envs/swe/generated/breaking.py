"""Putting bugs into a drawn package: which, and whether they can be seen, told apart and not guessed."""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from envs.code.driver import encode
from envs.code.problem import Args
from envs.swe.generated.package import Function, Package
from envs.swe.generated.running import load, outcome
from envs.swe.generated.suite import Case, inputs
from envs.swe.mutations import REMOVED_BODY, Mutation, functions, mutate, mutations, segment

PROBES, PROBE_POOL, LEAST_TELLING = 8, 40, 3
"""Recorded calls of each changed function: how many, drawn from how many, and how many tell bug from original."""
NEAR_MISSES, LEAST_FAILING = 3, 2
_TRIES = 30


@dataclass(frozen=True, slots=True)
class Bug:
    """One broken function: its text as it is and as it was, and three texts that are wrong in other ways."""

    function: Function
    kind: str
    source: str
    """Of the whole module, with this bug only."""
    old: str
    new: str
    wrong: tuple[str, ...]
    probes: tuple[dict[str, Any], ...]
    """`{"args", "kwargs", "expected"}`, encoded."""


def draw_bug(
    package: Package, function: Function, cases: Sequence[Case], rng: random.Random, *, removed: bool
) -> Bug | None:
    """A bug in one function that its own tests and probes show; None where no change is fit."""
    original = package.modules[function.module]
    node = _node(original, function.name)
    found = [m for m in mutations(original, node) if (m.kind == REMOVED_BODY) == removed]
    own = [case for case in cases if case.function == function.name]
    pool = inputs(function, rng, PROBE_POOL, [case.args for case in own])
    for mutation in _by_kind(found, rng)[:_TRIES]:
        source = mutate(original, mutation)
        broken = load({**package.modules, function.module: source})
        failing = sum(not case.passes(broken) for case in own)
        probes = _probes(load(package.modules), broken, function, pool)
        if failing < LEAST_FAILING or (failing == len(own) and not removed) or len(probes) < PROBES:
            continue
        wrong = _wrong(package, function, own, source, rng)
        if len(wrong) == NEAR_MISSES:
            old = segment(source, _node(source, function.name))
            return Bug(function, mutation.kind, source, old, segment(original, node), wrong, tuple(probes))
    return None


def _node(source: str, name: str) -> Any:
    return dict(functions(ast.parse(source)))[name]


def _by_kind(found: Sequence[Mutation], rng: random.Random) -> list[Mutation]:
    """In random order, first one of each kind: else the many constants would crowd out the rest."""
    shuffled = rng.sample(found, len(found))
    seen: dict[str, int] = {}
    order = {kind: rng.random() for kind in sorted({mutation.kind for mutation in found})}
    ranked = []
    for mutation in shuffled:
        seen[mutation.kind] = seen.get(mutation.kind, 0) + 1
        ranked.append((seen[mutation.kind], order[mutation.kind], mutation))
    return [mutation for *_, mutation in sorted(ranked, key=lambda each: each[:2])]


def _probes(
    right: Mapping[str, ModuleType],
    broken: Mapping[str, ModuleType],
    function: Function,
    pool: Sequence[Args],
) -> list[dict[str, Any]]:
    """Calls with what the original does, the telling ones first; empty when too few tell."""
    telling: list[dict[str, Any]] = []
    silent: list[dict[str, Any]] = []
    for args in pool:
        expected = outcome(getattr(right[function.module], function.name), args)
        seen = outcome(getattr(broken[function.module], function.name), args)
        probe = {"args": [encode(arg) for arg in args], "kwargs": {}, "expected": expected}
        (telling if seen != expected else silent).append(probe)
    if len(telling) < LEAST_TELLING:
        return []
    kept = telling[: PROBES - 2] + silent
    return (kept + telling[PROBES - 2 :])[:PROBES]


def _wrong(
    package: Package, function: Function, own: Sequence[Case], source: str, rng: random.Random
) -> tuple[str, ...]:
    """Texts of the function with another mistake, each failing one of its tests at least."""
    original = package.modules[function.module]
    found: dict[str, None] = {}
    for mutation in _by_kind(mutations(original, _node(original, function.name)), rng):
        other = mutate(original, mutation)
        if other == source or len(found) == NEAR_MISSES:
            continue
        loaded = load({**package.modules, function.module: other})
        if not all(case.passes(loaded) for case in own):
            found[segment(other, _node(other, function.name))] = None
    return tuple(found)

"""Is this environment sound, and are its rewards hard to fake? One small function a rule, behind `agent-rl check`.

report = check("sql-v1")
print(report.text())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from envs import registry
from envs.base import PolicySpec
from envs.checker import rules_of_contract as contract
from envs.checker import rules_of_leaks as leaks
from envs.checker import rules_of_levels as levels
from envs.checker import rules_of_replay as replay
from envs.checker import rules_of_reward as rewards
from envs.checker import rules_of_tasks as tasks_
from envs.checker.subject import Subject
from envs.types import Task
from sandbox.conformance.report import Broken, Case, CheckReport, Status, Unenforceable
from sandbox.errors import SandboxUnavailable

__all__ = ["RULES", "Case", "CheckReport", "Rule", "Status", "check"]

Rule = Callable[[Subject], str | None]
"""Returns when the rule holds, perhaps with a note; raises `Broken` or `Unenforceable` otherwise."""

RULES: dict[str, Rule] = {
    "registered": contract.registered,
    "import-light": contract.import_light,
    "tool-schemas-valid": contract.tool_schemas_valid,
    "task-stable-ids": tasks_.task_stable_ids,
    "split-disjoint": tasks_.split_disjoint,
    "gymnasium-api": contract.gymnasium_api,
    "gold-scores-one": rewards.gold_scores_one,
    "noop-scores-zero": rewards.noop_scores_zero,
    "levels-real": levels.levels_real,
    "reward-components": rewards.reward_components,
    "turn-limit": rewards.turn_limit,
    "no-fault-from-model": rewards.no_fault_from_model,
    "answer-not-leaked": tasks_.answer_not_leaked,
    "two-seeded-runs-identical": replay.two_seeded_runs_identical,
    "restore-equals-original": replay.restore_equals_original,
    "fork-independent": replay.fork_independent,
    "step-after-end-raises": contract.step_after_end_raises,
    "close-idempotent": contract.close_idempotent,
    "nothing-left-behind": leaks.nothing_left_behind,
}
"""Every rule by name, in the order in which they are tried; one more for each attack: `attack:NAME`."""

_ESSENTIAL = frozenset({"registered", "gold-scores-one", "noop-scores-zero"})


def check(
    env_id: str,
    *,
    tasks: Sequence[Task] | None = None,
    n: int = 8,
    seed: int = 0,
    resets: int = 200,
    rules: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda name: None,
    **options: Any,
) -> CheckReport:
    """Try every rule on an environment.

    Args:
        env_id: a registered id, `package.module:Class`, or `path/file.py:Class`.
        tasks: play these instead of the environment's own.
        n: how many tasks a rule looks at.
        seed: of the tasks that are drawn.
        resets: how often `nothing-left-behind` resets.
        rules: names of the only rules to try; `attack:*` stands for all attacks.
        progress: told the name of each rule before it is tried.
        options: given to the constructor.

    Raises:
        ValueError: an unknown rule.
    """
    try:
        spec = registry.spec(env_id)
        cls = spec.load()
        attacks = [p for p in cls.policies().values() if p.kind == "attack"]
    except Exception as error:  # noqa: BLE001 - the boundary to the code under check: importing it may raise anything
        case = Case(name="registered", status="fail", reason=f"{type(error).__name__}: {error}")
        return CheckReport(target=env_id, cases=(case,), essential=_ESSENTIAL)
    subject = Subject(
        target=env_id,
        spec=spec,
        cls=cls,
        n=n,
        seed=seed,
        resets=resets,
        own_tasks=tuple(tasks or ()),
        options=options,
    )
    chosen = _chosen(attacks, rules)
    cases = []
    for name, rule in chosen.items():
        progress(name)
        cases.append(_try(name, rule, subject))
    essential = _ESSENTIAL if rules is None else frozenset()
    return CheckReport(target=env_id, cases=tuple(cases), essential=essential)


def _chosen(attacks: Sequence[PolicySpec], names: Sequence[str] | None) -> dict[str, Rule]:
    available = dict(RULES)
    available.update({f"attack:{p.name}": partial(rewards.attack_scores_zero, policy=p) for p in attacks})
    if names is None:
        return available
    wanted = {
        n for name in names for n in ([f"attack:{p.name}" for p in attacks] if name == "attack:*" else [name])
    }
    for name in sorted(wanted - set(available)):
        raise ValueError(f"no rule is called {name!r}; the rules are {', '.join(available)}")
    return {name: rule for name, rule in available.items() if name in wanted}


def _try(name: str, rule: Rule, subject: Subject) -> Case:
    try:
        note = rule(subject)
    except Broken as broken:
        return Case(name=name, status="fail", reason=str(broken))
    except Unenforceable as unenforceable:
        return Case(name=name, status="unenforceable", reason=str(unenforceable))
    except Exception as error:  # noqa: BLE001 - the boundary to the code under check: whatever it raises is a finding
        missing = _unavailable(error)
        if missing is not None:
            return Case(name=name, status="unenforceable", reason=f"no sandbox on this machine: {missing}")
        return Case(name=name, status="fail", reason=f"{type(error).__name__}: {error}")
    return Case(name=name, status="pass", reason=note or "")


def _unavailable(error: BaseException | None) -> SandboxUnavailable | None:
    while error is not None and not isinstance(error, SandboxUnavailable):
        error = error.__cause__
    return error

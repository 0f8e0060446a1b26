from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from envs import registry
from envs.base import Env
from envs.checker import RULES, Case, CheckReport, check
from envs.checker.holdings import Holdings
from envs.policies import PolicySpec
from tests.envs.toys import broken
from tests.envs.toys.sums import Sums

FLAWS: list[tuple[type[Env], str, str]] = [
    (broken.NoAttack, "registered", "at least one attack"),
    (broken.NoDescription, "tool-schemas-valid", "'shrug' has no description"),
    (broken.SeedIgnored, "gymnasium-api", "super"),
    (broken.ChangingTasks, "task-stable-ids", "different tasks"),
    (broken.TaskEaten, "task-stable-ids", "changed it"),
    (broken.OneWorldForAll, "split-disjoint", "shares its world"),
    (broken.GradesLow, "gold-scores-one", "gold scores 0.9"),
    (broken.PaysForNothing, "noop-scores-zero", "by doing nothing"),
    (broken.BelievesParts, "attack:partly", "scores 1"),
    (broken.GradesTwice, "reward-components", "weighted sum"),
    (broken.NeverStops, "turn-limit", "max_turns = 5"),
    (broken.Crashes, "no-fault-from-model", "IndexError"),
    (broken.LeaksInErrors, "answer-not-leaked", "malformed calls"),
    (broken.LeaksInLog, "answer-not-leaked", "the log"),
    (broken.LeaksInState, "answer-not-leaked", "no-op policy"),
    (broken.TellsTime, "two-seeded-runs-identical", "noted at"),
    (broken.ForgetsNotes, "restore-equals-original", "restored from a copy"),
    (broken.SharesNotes, "fork-independent", "the fork of turn 1"),
    (broken.GoesOn, "step-after-end-raises", "after the episode's end"),
    (broken.ClosesOnce, "close-idempotent", "already closed"),
    (broken.LeavesDescriptor, "nothing-left-behind", "descriptors"),
    (broken.LeavesFile, "nothing-left-behind", "files"),
    (broken.LeavesProcess, "nothing-left-behind", "processes"),
    (broken.FailsToStart, "gold-scores-one", "no world today"),
    (broken.LevelsAlike, "levels-real", "not harder than the first"),
]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry to write in, and little patience with what is left behind."""
    monkeypatch.setattr("envs.checker.holdings.GRACE_S", 0.3)
    before = dict(registry._registry)
    yield
    registry._registry.clear()
    registry._registry.update(before)


def only(report: CheckReport) -> Case:
    assert len(report.cases) == 1
    return report.cases[0]


@pytest.mark.parametrize(("cls", "rule", "reason"), FLAWS, ids=[f"{c.__name__}-{r}" for c, r, _ in FLAWS])
def test_each_flaw_is_reported_under_its_rule(known: None, cls: type[Env], rule: str, reason: str) -> None:
    registry.register("sums-v1", cls)
    case = only(check("sums-v1", n=2, resets=20, rules=[rule]))
    assert (case.name, case.status) == (rule, "fail")
    assert reason in case.reason


def test_rules_that_need_another_process() -> None:
    present = sys.modules.get("tensorflow")
    try:
        case = only(check("tests.envs.toys.heavy:Heavy", rules=["import-light"]))
    finally:  # what the toy left in this process would be taken for the real one
        if present is None:
            sys.modules.pop("tensorflow", None)
    assert case.status == "fail"
    assert "tensorflow" in case.reason
    case = only(check("tests.envs.toys.broken:HashOrder", n=1, rules=["two-seeded-runs-identical"]))
    assert case.status == "fail"
    assert "PYTHONHASHSEED" in case.reason


def test_every_rule_has_a_broken_toy() -> None:
    assert {*RULES} <= {rule for _, rule, _ in FLAWS} | {"import-light"}


def test_a_sound_environment_passes_every_rule() -> None:
    names: list[str] = []
    report = check("tests.envs.toys.sums:Sums", n=3, progress=names.append)
    assert report.passed, report.text()
    assert names == [c.name for c in report.cases] == [*RULES, "attack:partly"]
    assert {c.status for c in report.cases} == {"pass"}


def test_own_tasks_are_played_instead(known: None) -> None:
    tasks = Sums.tasks("test", 2)
    report = check(
        "tests.envs.toys.sums:Sums", tasks=tasks, rules=["gold-scores-one", "gymnasium-api", "attack:*"]
    )
    assert {c.name: c.status for c in report.cases} == {
        "gold-scores-one": "pass",
        "gymnasium-api": "unenforceable",
        "attack:partly": "pass",
    }
    assert report.passed


def test_an_unknown_environment_fails_with_a_suggestion() -> None:
    report = check("sql-v9")
    assert not report.passed
    assert "the latest is 'sql-v1'" in only(report).reason


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule is called 'gold'"):
        check("tests.envs.toys.sums:Sums", rules=["gold"])


def test_report_in_json_and_text() -> None:
    cases = (Case(name="a", status="pass"), Case(name="bb", status="unenforceable", reason="no /proc"))
    report = CheckReport(target="x-v1", cases=cases)
    assert report.to_json() == {
        "target": "x-v1",
        "passed": True,
        "cases": [
            {"name": "a", "status": "pass", "reason": ""},
            {"name": "bb", "status": "unenforceable", "reason": "no /proc"},
        ],
    }
    assert report.text().splitlines() == [
        "pass           a",
        "unenforceable  bb  no /proc",
        "x-v1 passed: 2 cases, 0 failed, 1 unenforceable",
    ]


def test_a_repeated_reason_is_said_once() -> None:
    cases = tuple(Case(name=n, status="fail", reason="reset raises KeyError") for n in ("a", "b"))
    assert CheckReport(target="x-v1", cases=cases).text().splitlines() == [
        "fail           a  reset raises KeyError",
        "fail           b  as a",
        "x-v1 did not pass: 2 cases, 2 failed, 0 unenforceable",
        "mend a first: the others may follow from it",
    ]


def test_a_policy_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'attack'"):
        PolicySpec(name="sly", kind="atack", make=lambda task, seed: None)  # type: ignore[arg-type, return-value]


def test_an_environment_that_could_not_be_tried_has_not_passed() -> None:
    cases = (Case(name="gold-scores-one", status="unenforceable", reason="no sandbox"),)
    assert not CheckReport(target="x", cases=cases, essential=frozenset({"gold-scores-one"})).passed


def test_holdings_name_what_is_new() -> None:
    def held(mounts: set[str]) -> Holdings:
        none = frozenset[str]()
        return Holdings(processes=none, mounts=frozenset(mounts), files=none, descriptors=none)

    assert held({"a"}).beyond(held({"a", "b"})) == []
    assert held({"a", "tmpfs /x"}).beyond(held({"a"})) == ["1 mounts (tmpfs /x)"]

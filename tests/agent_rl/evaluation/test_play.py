"""One episode of a scripted policy: whatever the world does, there is an outcome."""

from agent_rl.evaluation import evaluate_policy
from tests.agent_rl import toy


def test_a_world_that_cannot_be_taken_down_does_not_stop_the_evaluation():
    class Sticky(toy.LookEnv):
        def teardown(self) -> None:
            raise OSError("busy")

    gold = toy.LookEnv.policies()["gold"].make
    report = evaluate_policy(Sticky, gold, [toy.task(i, "test") for i in range(3)], name="gold")
    assert (report.success, report.tasks, report.faults) == (1.0, 3, {})


def test_a_fault_is_an_outcome_and_counted_apart():
    broken = type("Broken", (toy.LookEnv,), {"breaks": staticmethod(toy.Flaky(1))})
    gold = toy.LookEnv.policies()["gold"].make
    tasks = [toy.task(i, "test") for i in range(3)]
    report = evaluate_policy(broken, gold, tasks, name="gold", threads=1)
    assert (report.success, report.tasks, report.faults) == (1.0, 2, {"sandbox_lost": 1})

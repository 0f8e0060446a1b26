from __future__ import annotations

from typing import Any

import pytest

from envs import registry
from envs.checker import check
from envs.policies import PolicySpec, ScriptedPolicy, call
from envs.types import Policy, Split, Task
from tests.envs.toys import sums


class Levelled(sums.Sums):
    """Level n: gold reads n numbers twice, and the sloppy policy fails n times in three."""

    id = "levelled-v1"
    levels = (0, 1, 2)

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        import dataclasses

        level = options.get("level", 0)
        return [dataclasses.replace(t, metadata={"level": level}) for t in super().tasks(split, n, seed)]

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        return {
            **super().policies(),
            "gold": PolicySpec(name="gold", kind="gold", make=cls.gold),
            "sloppy": PolicySpec(name="sloppy", kind="sloppy", make=cls.sloppy),
        }

    @staticmethod
    def gold(task: Task, seed: int) -> Policy:
        looks = [call("read", index=0)] * task.metadata["level"]
        return ScriptedPolicy([*looks, call("submit", text=task.answer)])

    @staticmethod
    def sloppy(task: Task, seed: int) -> Policy:
        wrong = task.seed // 3 % 3 < task.metadata["level"]
        return ScriptedPolicy([call("submit", text="?" if wrong else task.answer)])


class Flat(Levelled):
    id = "flat-v1"

    @staticmethod
    def gold(task: Task, seed: int) -> Policy:
        return ScriptedPolicy([call("submit", text=task.answer)])


@pytest.mark.parametrize(("cls", "status"), [(Levelled, "pass"), (Flat, "fail")])
def test_levels_have_to_be_real(cls: type[Levelled], status: str) -> None:
    before = dict(registry._registry)
    registry.register(cls.id, cls)
    try:
        (case,) = check(cls.id, n=2, rules=["levels-real"]).cases
    finally:
        registry._registry.clear()
        registry._registry.update(before)
    assert case.status == status
    assert "level 0: sloppy 1.00, gold 1.0 turns; level 1: sloppy 0." in case.reason

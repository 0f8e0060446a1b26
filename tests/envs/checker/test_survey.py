from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from envs import registry
from envs.checker.cost import metered
from envs.checker.survey import survey
from envs.policies import PolicySpec, ScriptedPolicy, call, trivial
from envs.rewards import reward
from envs.types import Reward, Task
from tests.envs.toys.sums import Sums


class Believing(Sums):
    """Pays for every submission that is among a task's `accepted`; falls over where there is none."""

    id = "sums-v1"

    @classmethod
    def trivial_policies(cls, tasks: Sequence[Task]) -> dict[str, PolicySpec]:
        return trivial(lambda text: call("submit", text=text), [str(t.answer) for t in tasks])

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        attack = PolicySpec(
            name="shout", kind="attack", make=lambda task, seed: ScriptedPolicy([call("submit", text="!")])
        )
        return {**super().policies(), "shout": attack}

    def grade(self) -> Reward | float:
        accepted = self.task.metadata.get("accepted", [])
        return reward(solved=float(self.submitted == self.task.answer or self.submitted in accepted))


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    before = dict(registry._registry)
    registry.register("sums-v1", Believing, replace=True)
    yield
    registry._registry.clear()
    registry._registry.update(before)


def tasks() -> list[Task]:
    sound, passable, hackable, broken, crashing = Sums.tasks("test", 5)
    return [
        sound,
        dataclasses.replace(passable, metadata={"accepted": ["yes"]}),
        dataclasses.replace(hackable, metadata={"accepted": ["!", "yes"]}),
        dataclasses.replace(broken, answer=[]),
        dataclasses.replace(crashing, data={"numbers": None}),
    ]


def test_each_task_is_named_for_what_it_is() -> None:
    told: list[str] = []
    found = survey("sums-v1", tasks(), progress=told.append)
    assert [f.finding for f in found.findings] == ["sound", "passable", "hackable", "broken", "broken"]
    assert told == [t.id for t in tasks()]
    reasons = [f.reason for f in found.findings]
    assert reasons[0] == ""
    assert reasons[1] == "trivial 'yes' scores 1"
    assert "attack 'shout' scores 1" in reasons[2]
    assert reasons[3] == "gold scores 0, and 0 when played again"
    assert "TypeError" in reasons[4]
    assert not found.passed
    assert survey("sums-v1", tasks()[:1]).passed


def test_the_table_and_the_json_say_the_same() -> None:
    found = survey("sums-v1", tasks())
    assert "5 of 5 tasks played: 1 sound, 2 broken, 1 passable, 1 hackable; 0 bad rows" in found.text()
    assert max(map(len, found.text().splitlines()[:3])) <= 80
    rows: list[dict[str, Any]] = json.loads(json.dumps(found.to_json()))["tasks"]
    assert [row["finding"] for row in rows] == [f.finding for f in found.findings]


def test_a_sample_is_drawn_and_all_can_be_had() -> None:
    many = Sums.tasks("test", 30)
    assert len(survey("sums-v1", many).findings) == 20
    assert len(survey("sums-v1", many, sample=None).findings) == 30
    drawn = [[f.task_id for f in survey("sums-v1", many, sample=3, seed=seed).findings] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_list_of_all_golds_and_a_frequent_one_are_tried() -> None:
    made = trivial(lambda text: call("submit", text=text), ["a", "b", "a"], also={"count": "SELECT 42"})
    assert list(made) == ["empty", "yes", "zero", "count", "frequent", "candidates"]
    said = {name: p.make(tasks()[0], 0).act([], [{}])["tool_calls"][0] for name, p in made.items()}  # type: ignore[list-item, typeddict-item]
    assert said["frequent"]["function"]["arguments"] == {"text": "a"}
    assert said["candidates"]["function"]["arguments"] == {"text": "a\nb"}
    assert list(trivial(lambda text: call("x"), ["a"])) == ["empty", "yes", "zero"]


def test_cost_counts_children() -> None:
    work = "import time; x = bytearray(64 << 20); t = time.process_time()\nwhile time.process_time() < t + 0.2: pass"
    with metered() as meter:
        subprocess.run([sys.executable, "-c", work], check=True)
    assert meter.cost.cpu_s >= 0.2
    assert meter.cost.seconds >= 0.2
    assert meter.cost.peak_bytes > 60 << 20
    with metered() as meter:
        time.sleep(0.01)
    assert meter.cost.cpu_s < 0.2

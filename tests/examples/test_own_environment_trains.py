"""The 30-line environment from outside the package trains by its path, like any other."""

from pathlib import Path

from agent_rl.config import load
from agent_rl.runs import train_run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "02_own_environment"


def test_it_trains(tmp_path):
    settings = [
        f'run_dir="{tmp_path / "run"}"',
        f'env.id="{EXAMPLE / "guess.py"}:Guess"',
        "env.train_tasks=8",
        "env.eval_tasks=8",
        "model.source=tiny:32x1x2",
        "warm_start.steps=2",
        "warm_start.demonstrations=16",
        "warm_start.batch_size=4",
        "trainer.steps=1",
        "trainer.groups_per_step=2",
        "trainer.group_size=2",
    ]
    reports = train_run(load(EXAMPLE / "train.toml", settings))
    assert reports["after"].tasks == 8
    assert not reports["after"].faults


def test_the_shipped_configurations_are_valid():
    for path in EXAMPLE.parent.rglob("*.toml"):
        load(path)

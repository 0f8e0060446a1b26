"""Whole runs of a very small model on the toy world: they learn, stop, continue, and give the same weights."""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from agent_rl.build import build
from agent_rl.config import ConfigError, parse, to_toml
from agent_rl.learner.model import load_model
from agent_rl.runs import evaluate_run, export_run, train_run
from agent_rl.storage import Store
from agent_rl.trainer import train
from agent_rl.trainer.warm_start import warm_start
from tests.agent_rl.toy import LookEnv

ROOT = Path(__file__).resolve().parents[3]


def config(run_dir: Path, *, steps: int = 2, **sections):
    base = {
        "run_dir": str(run_dir),
        "deterministic": True,
        "env": {"id": "tests.agent_rl.toy:LookEnv", "train_tasks": 8, "eval_tasks": 6},
        "model": {"source": "tiny:32x1x2"},
        "rendering": {"tool_format": "pythonic"},
        "engine": {"window": 512, "max_slots": 16},
        "rollout": {"max_new_tokens": 12, "env_threads": 2},
        "warm_start": {"policy": "gold", "steps": 3, "demonstrations": 8, "batch_size": 4},
        "learner": {"learning_rate": 1e-3},
        "trainer": {"steps": steps, "groups_per_step": 2, "group_size": 3},
    }
    for name, values in sections.items():
        base[name] = {**base.get(name, {}), **values} if isinstance(values, dict) else values
    return parse(base)


def weights(run_dir: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    newest = sorted((run_dir / "checkpoints").glob("step-*"))[-1]
    (file,) = (newest / "learner").rglob("*.safetensors")
    return load_file(file)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def test_a_run_records_everything_and_reports(tmp_path):
    reports = train_run(config(tmp_path / "run"))
    assert {"before", "after"} <= set(reports)
    assert reports["after"].tasks == 6
    store = Store.open(tmp_path / "run")
    assert [s["step"] for s in store.steps()] == [0, 1]
    assert store.info()["status"] == "finished"
    metrics = store.steps()[0]["metrics"]
    assert {"rollout/zero_spread", "learner/loss", "learner/trie_ratio"} <= set(metrics)
    forest = store.load_forest(1, "train")
    assert len(forest.episodes) == 6
    assert len(store.load_forest(0, "demonstrations").episodes) == 8


def test_the_engine_and_the_learner_agree_about_what_was_sampled(tmp_path):
    """Sampled log-probabilities of every stored action against a plain forward of the same weights."""
    from agent_rl.trainer.checkpoint import load_latest

    settings = config(tmp_path / "run", steps=1, learner={"learning_rate": 1e-9})
    train_run(settings)
    parts = build(settings)
    load_latest(parts)
    forest = parts.store.load_forest(0, "train")
    annotations = parts.learner.score(forest, ["proximal_logprobs"])
    checked = 0
    for node in forest.nodes.values():
        if node.sampled:
            scored = annotations.get("proximal_logprobs", node.id)
            assert np.abs(scored - node.sampled_logprobs).max() < 1e-4
            checked += len(node)
    assert checked > 20


def test_continuing_gives_the_same_weights_as_never_stopping(tmp_path):
    train_run(config(tmp_path / "whole", steps=3))
    train_run(config(tmp_path / "parts", steps=1))
    train_run(config(tmp_path / "parts", steps=3))
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_continuing_after_an_evaluation_gives_the_same_weights_as_never_stopping(tmp_path):
    train_run(config(tmp_path / "whole", steps=2, trainer={"eval_every": 1}))
    assert list(train_run(config(tmp_path / "parts", steps=0))) == ["before"]
    train_run(config(tmp_path / "parts", steps=2, trainer={"eval_every": 1}))
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_every_step_and_every_evaluation_begins_with_an_empty_cache(tmp_path):
    """What an engine remembers of an evaluation is not there after a resume, so a step must not use it."""
    parts = build(config(tmp_path / "run", steps=2, trainer={"eval_every": 1}))
    events: list[str] = []

    class Noted:
        async def publish(self, policy, version, tensors):
            events.append("publish")
            return await parts.publisher.publish(policy, version, tensors)

    class Collector:
        def __getattr__(self, name):
            return getattr(parts.collector, name)

        async def collect(self, requests, **how):
            events.append(how.get("purpose", "train"))
            return await parts.collector.collect(requests, **how)

    asyncio.run(train(dataclasses.replace(parts, publisher=Noted(), collector=Collector())))
    asyncio.run(parts.engine.close())
    assert events == ["publish", "eval", *(["publish", "train", "publish", "eval"] * 2)]


def test_episodes_of_evaluations_are_recorded(tmp_path):
    train_run(config(tmp_path / "run", steps=1))
    purposes = Counter((r["purpose"], r["step"]) for r in Store.open(tmp_path / "run").episodes())
    assert purposes == {("train", 0): 6, ("eval", 0): 6, ("eval", 1): 6}


def test_fewer_steps_than_are_done_are_refused(tmp_path):
    train_run(config(tmp_path / "run", steps=2))
    with pytest.raises(ValueError, match="has finished 2 steps"):
        train_run(config(tmp_path / "run", steps=1))


def test_a_warm_start_without_one_sound_demonstration_says_why(tmp_path, monkeypatch):
    def setup(env, task):
        env.word = task.answer
        if env.broken:
            raise RuntimeError("no disk")

    settings = config(tmp_path / "run", steps=1)
    monkeypatch.setattr(LookEnv, "setup", setup)
    monkeypatch.setattr(LookEnv, "broken", False, raising=False)
    parts = build(settings)
    monkeypatch.setattr(LookEnv, "broken", True)
    with pytest.raises(RuntimeError, match=r"none of 8 demonstrations can be imitated, 8 faulted.*no disk"):
        asyncio.run(asyncio.wait_for(warm_start(parts), 20))
    asyncio.run(parts.engine.close())


def test_a_warm_start_takes_one_step_a_batch(tmp_path):
    parts = build(config(tmp_path / "run", learner={"passes": 2, "mini_batches": 3}))
    learners = []

    def supervised():
        learners.append(parts.supervised())
        return learners[-1]

    asyncio.run(warm_start(dataclasses.replace(parts, supervised=supervised)))
    asyncio.run(parts.engine.close())
    assert learners[0].version == 3


def test_a_run_that_fails_says_so(tmp_path, monkeypatch):
    def setup(env, task):
        raise RuntimeError("no disk")

    settings = config(tmp_path / "run", steps=1, model={"source": "tiny:32x1x2"})
    build(settings)  # the model is made before the world breaks
    monkeypatch.setattr(LookEnv, "setup", setup)
    with pytest.raises(RuntimeError, match="can be imitated"):
        train_run(settings)
    assert Store.open(tmp_path / "run").info()["status"] == "failed"


def test_another_seed_gives_other_weights(tmp_path):
    train_run(config(tmp_path / "a", steps=1))
    train_run(config(tmp_path / "b", steps=1, seed=1))
    assert not same(weights(tmp_path / "a"), weights(tmp_path / "b"))


def test_killed_at_any_moment_a_run_continues_to_the_same_weights(tmp_path):
    train_run(config(tmp_path / "whole", steps=3))
    settings = config(tmp_path / "killed", steps=3)
    file = tmp_path / "c.toml"
    file.write_text(to_toml(settings))
    command = [sys.executable, "-m", "agent_rl.cli", "train", str(file)]
    for seconds in (6.0, 9.0):
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))


def test_a_folder_that_holds_another_run_is_refused(tmp_path):
    train_run(config(tmp_path / "run", steps=1))
    with pytest.raises(ConfigError, match=r"learner\.learning_rate: 0\.001 -> 0\.1"):
        train_run(config(tmp_path / "run", steps=1, learner={"learning_rate": 0.1}))


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    import fcntl

    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / ".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another process trains in"):
            train_run(config(tmp_path / "run", steps=1))


def test_a_run_can_be_evaluated_later(tmp_path):
    train_run(config(tmp_path / "run", steps=1))
    report = evaluate_run(tmp_path / "run", tasks=5, samples=2)
    assert (report.tasks, report.samples) == (5, 2)
    assert set(report.pass_at) == {1, 2}
    folder = export_run(tmp_path / "run", tmp_path / "model")
    model, tokenizer = load_model(str(folder))
    assert same(model.state_dict(), {**model.state_dict(), **weights(tmp_path / "run")})
    assert tokenizer.chat_template


@pytest.mark.parametrize(
    "changed",
    [
        {"credit": {"name": "anchor"}},
        {"credit": {"name": "tree"}, "branching": {"name": "random_turn"}},
        {"context": {"name": "summarize", "working_tokens": 150}},
        {"curriculum": {"name": "dynamic_filter"}},
        {"loss": {"name": "sequence", "clip_low": 3e-4, "clip_high": 4e-4}},
        {"weights": {"name": "disk"}},
    ],
    ids=lambda changed: next(iter(changed.values()))["name"],
)
def test_one_key_changes_the_algorithm(tmp_path, changed):
    reports = train_run(config(tmp_path / "run", steps=1, **changed))
    assert not reports["after"].faults
    metrics = Store.open(tmp_path / "run").steps()[0]["metrics"]
    assert metrics["rollout/faults"] == 0
    assert json.dumps(metrics)

import asyncio

import pytest

from agent_rl.build import build
from agent_rl.config import parse
from agent_rl.runs import train_run
from agent_rl.telemetry.jsonl_sink import JsonlSink
from envs.tasksets import save_jsonl
from tests.agent_rl.toy import LookEnv


def test_by_default_a_summary_comes_before_the_window_is_full(tmp_path):
    parts = build(
        parse(
            {
                "run_dir": str(tmp_path / "run"),
                "env": {"id": "tests.agent_rl.toy:LookEnv", "train_tasks": 2, "eval_tasks": 2},
                "model": {"source": "tiny:32x1x2"},
                "engine": {"window": 512, "max_slots": 4},
                "rollout": {"max_new_tokens": 112},
                "context": {"name": "summarize"},
            }
        )
    )
    asyncio.run(parts.engine.close())
    # A state longer than 400 leaves no room for an action and would end the episode.
    assert parts.collector.context.working_tokens == 380


@pytest.mark.parametrize(("rows", "train", "demonstrations"), [(7, 4, 3), (3, 3, 3)])
def test_rows_of_a_file_serve_demonstrations_and_training_apart_where_there_are_enough(
    tmp_path, rows, train, demonstrations
):
    tasks = [*LookEnv.tasks("train", rows, 0), *LookEnv.tasks("test", 2, 0)]
    file = tmp_path / "tasks.jsonl"
    save_jsonl(file, tasks)
    parts = build(
        parse(
            {
                "run_dir": str(tmp_path / "run"),
                "env": {"id": "tests.agent_rl.toy:LookEnv", "tasks_file": str(file)},
                "warm_start": {"policy": "gold", "steps": 1, "demonstrations": 3},
                "model": {"source": "tiny:32x1x2"},
                "engine": {"window": 512, "max_slots": 4},
            }
        )
    )
    asyncio.run(parts.engine.close())
    trained = {t.id for t in parts.curriculum.sample(0, 20) for t in [t.task]}
    shown = {t.id for t in parts.demonstration_tasks}
    assert (len(trained), len(shown)) == (train, demonstrations)
    assert not trained & shown or rows == 3


def test_a_run_that_was_refused_leaves_no_folder(tmp_path):
    config = parse(
        {
            "run_dir": str(tmp_path / "run"),
            "env": {"id": "tests.agent_rl.toy:LookEnv"},
            "loss": {"name": "cliped"},
        }
    )
    with pytest.raises(ValueError, match="clipped"):
        train_run(config, sinks=[JsonlSink(tmp_path / "run" / "metrics.jsonl")])
    assert list(tmp_path.iterdir()) == []

import asyncio

from agent_rl.build import build
from agent_rl.config import parse


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

import subprocess
import sys
from pathlib import Path

import pytest

from agent_rl.config import Config, ConfigError, fields, load, parse, to_toml


def test_at_most_eighty_settings():
    names = list(fields())
    assert len(names) <= 80, names
    assert len(set(names)) == len(names)


def test_every_setting_has_a_reader():
    root = Path(__file__).resolve().parents[2] / "agent_rl"
    sources = [p.read_text() for p in root.rglob("*.py") if p.name != "config.py"]
    readers = "\n".join([*sources, (root / "config.py").read_text()])
    unread = [n for n in fields() if f".{n.rpartition('.')[2]}" not in readers]
    assert unread == []


def test_the_effective_configuration_can_be_read_back(tmp_path):
    config = parse({"env": {"options": {"level": 2}}, "trainer": {"steps": 7}, "run_dir": 'runs/"x"'})
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config))
    assert load(path) == config


def test_overrides_win_and_bare_strings_need_no_quotes(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[trainer]\nsteps = 3\n")
    config = load(path, ["trainer.steps=9", "credit.name=anchor", "env.options.level=1"])
    assert config.trainer.steps == 9
    assert config.credit.name == "anchor"
    assert config.env.options == {"level": 1}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"trainer": {"stpes": 3}}, "did you mean trainer.steps?"),
        ({"trainr": {"steps": 3}}, "did you mean"),
        ({"trainer": {"steps": "many"}}, "trainer.steps"),
        ({"credit": {"name": "tree"}}, "branching.name = 'random_turn'"),
        (
            {
                "credit": {"name": "tree", "rule": "tree_rl"},
                "branching": {"name": "random_turn"},
                "loss": {"name": "sequence"},
            },
            "credit.rule = 'tree_grpo'",
        ),
        ({"env": {"tasks_file": "mine.jsonl", "options": {"level": 1}}}, "leave one of them out"),
        ({"trainer": {"group_size": 1}}, "raise trainer.group_size"),
        ({"rollout": {"max_new_tokens": 5000}}, "engine.window"),
        ({"context": {"working_tokens": 5000}}, "exceeds engine.window"),
        (
            {
                "context": {"working_tokens": 1000},
                "engine": {"window": 1024},
                "rollout": {"max_new_tokens": 64},
            },
            "end before a summary",
        ),
    ],
)
def test_mistakes_are_answered_with_the_next_step(data, says):
    with pytest.raises(ConfigError, match=says.replace("?", r"\?").replace(".", r"\.")):
        parse(data)


def test_a_file_that_is_not_there_or_not_toml(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("steps = = 3")
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        load(tmp_path / "bad.toml")
    with pytest.raises(ConfigError, match="key=value"):
        load(None, ["trainer.steps"])


def test_defaults_are_valid():
    assert parse({}) == Config()


def test_any_text_can_be_read_back(tmp_path):
    text = 'Sum up 😀 "quoted" \\ \n\t\x7f\x01 ü'
    config = parse({"context": {"instruction": text}, "env": {"options": {"a b": text, "é": 1}}})
    path = tmp_path / "c.toml"
    path.write_text(to_toml(config), encoding="utf-8")
    assert load(path) == config


def test_a_configuration_is_read_without_torch():
    loaded = "import sys, agent_rl.config, agent_rl.cli; print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True).stdout == b"False\n"
    )

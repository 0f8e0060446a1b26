from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import gymnasium
import pytest

from envs import registry
from envs.errors import UnknownEnvError
from envs.registry import EnvSpec, list_ids, make, register, spec
from tests.envs.toys.sums import Sums


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    yield
    for id in [i for i in gymnasium.registry if i.startswith(("agent_rl/sums", "agent_rl/shop"))]:
        del gymnasium.registry[id]


def test_register_and_make() -> None:
    register("sums-v1", Sums, max_turns=3)
    assert "sums-v1" in list_ids()
    env = make("sums-v1")
    assert isinstance(env, Sums)
    assert env.max_turns == 3
    assert make("sums-v1", max_turns=2).max_turns == 2
    assert spec("sums-v1") == EnvSpec(id="sums-v1", entry_point=Sums, kwargs={"max_turns": 3})


def test_registering_again() -> None:
    register("sums-v1", Sums)
    register("sums-v1", Sums)
    with pytest.raises(ValueError, match="already registered"):
        register("sums-v1", "other.module:Class")
    register("sums-v1", "other.module:Class", replace=True)
    assert spec("sums-v1").entry_point == "other.module:Class"


@pytest.mark.parametrize("id", ["sums", "Sums-v1", "sums-v", "-v1", "a b-v1", "sums-v1.0"])
def test_ids_carry_a_version(id: str) -> None:
    with pytest.raises(ValueError, match="ends in a version"):
        register(id, Sums)


def test_entry_points_name_a_class() -> None:
    with pytest.raises(ValueError, match=r"package\.module:Class"):
        register("sums-v1", "tests.envs.toys.sums")


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("sql-v7", "has no version 7: the latest is 'sql-v1'"),
        ("shop-v1", "the latest is 'shop-v12'"),
        ("sql", "needs a version: the latest is 'sql-v1'"),
        ("sqk-v1", "did you mean 'sql-v1'"),
        ("zzzzzzz", "known ids: .*sql-v1"),
        ("no.such.module:Class", "no module 'no.such.module'"),
        ("tests.envs.nothing:Class", "no module 'tests.envs.nothing'"),
        ("tests.envs.toys.sums:Sumz", "did you mean 'Sums'"),
        ("tests.envs.toys.sums:PROMPT", "not a class derived from Env"),
        ("nowhere.py:Class", "no file 'nowhere.py'"),
    ],
)
def test_unknown_names_say_what_would_work(id: str, message: str) -> None:
    for version in (2, 9, 12):
        register(f"shop-v{version}", Sums)
    with pytest.raises(UnknownEnvError, match=message):
        make(id)
    with pytest.raises(LookupError):
        make(id)


def test_an_error_inside_the_module_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import no_such_dependency", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        make(f"{tmp_path}/mine.py:Class")
    (tmp_path / "mine.py").write_text("from tests.envs.toys.sums import Sums as Class", encoding="utf-8")
    assert isinstance(make(f"{tmp_path}/mine.py:Class"), Sums)


def test_dotted_paths_and_files_are_loaded_once() -> None:
    assert type(make("tests.envs.toys.sums:Sums")) is Sums
    file = f"{Path(__file__).parent}/toys/sums.py:Sums"
    assert type(make(file)) is type(make(file))
    assert type(make(file)).__name__ == "Sums"


def test_plugins_are_listed_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint(name="plugged-v1", value="not_installed_yet:Env", group=registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    registry._plugins.cache_clear()
    try:
        assert "plugged-v1" in list_ids()
        with pytest.raises(UnknownEnvError, match="not_installed_yet"):
            make("plugged-v1")
    finally:
        registry._plugins.cache_clear()


def test_gymnasium_finds_what_was_registered_before_and_after() -> None:
    assert "agent_rl/sql-v1" in gymnasium.registry
    register("sums-v1", Sums, max_turns=3)
    env = gymnasium.make("agent_rl/sums-v1")
    assert isinstance(env.unwrapped, Sums)
    assert env.unwrapped.max_turns == 3
    assert gymnasium.make("agent_rl/sums-v1", max_turns=2).unwrapped.max_turns == 2  # type: ignore[attr-defined]


def test_importing_the_layer_is_light() -> None:
    code = (
        "import sys, envs, envs.registry, envs.types\n"
        "assert 'gymnasium' not in sys.modules\n"
        "import envs.tool_env, envs.checker\n"
        "print([m for m in ('torch', 'transformers', 'vllm', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_of_the_package_are_loaded_when_used() -> None:
    import envs

    assert envs.ToolEnv.__module__ == "envs.tool_env"
    assert set(envs._HOME) == set(envs.__all__)
    for name in envs.__all__:
        assert getattr(envs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'TooolEnv'"):
        _ = envs.TooolEnv

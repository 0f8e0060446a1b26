"""Rules about the interface: registration, Gymnasium's contract, schemas, life and death of an environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from envs.checker.subject import Subject
from envs.errors import EnvError
from envs.registry import gymnasium_spec
from envs.snapshots import canonical_json
from sandbox.conformance.report import Broken, Unenforceable
from tools.types import Message, ToolSchema

HEAVY = ("torch", "transformers", "vllm", "tensorflow", "jax")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


def registered(subject: Subject) -> None:
    """The class has the id it is registered under, declares its limits, and names its policies."""
    cls = subject.cls
    if not cls.id:
        raise Broken(f"{cls.__name__} has no id: set the class attribute id = 'name-v1'")
    if subject.spec.id != cls.id and ":" not in subject.spec.id:
        raise Broken(f"it is registered as {subject.spec.id!r}, but its id is {cls.id!r}")
    if cls.determinism not in ("exact", "reward", "none"):
        raise Broken(f"determinism is 'exact', 'reward' or 'none', got {cls.determinism!r}")
    kinds = {p.kind for p in cls.policies().values()}
    missing = [k for k in ("gold", "noop", "attack") if k not in kinds]
    if missing:
        raise Broken(
            f"policies() must ship gold, noop and at least one attack, it lacks: {', '.join(missing)}"
        )
    for key, policy in cls.policies().items():
        if policy.name != key:
            raise Broken(f"policies() has {policy.name!r} under the key {key!r}")


def import_light(subject: Subject) -> None:
    """Importing the environment's module loads no learning library: a worker needs no GPU stack."""
    cls = subject.cls
    found = sys.modules.get(cls.__module__)
    file = getattr(found, "__file__", None)
    if cls.__module__ == "__main__" or file is None:
        raise Unenforceable(f"the module {cls.__module__!r} cannot be imported by another process")
    code = (
        "import importlib.util, sys\n"
        "if sys.argv[1] == 'file':\n"
        "    spec = importlib.util.spec_from_file_location('checked', sys.argv[2])\n"
        "    module = importlib.util.module_from_spec(spec); sys.modules['checked'] = module\n"
        "    spec.loader.exec_module(module)\n"
        "else:\n"
        "    importlib.import_module(sys.argv[2])\n"
        f"print(' '.join(m for m in {HEAVY!r} if m in sys.modules))\n"
    )
    by_file = cls.__module__.startswith("agent_rl_file_")
    argv = ["file", str(Path(file).resolve())] if by_file else ["module", cls.__module__]
    done = run_python(code, *argv)
    if done.returncode != 0:
        raise Broken(f"importing {cls.__module__} in a fresh process failed: {done.stderr.strip()[-300:]}")
    if done.stdout.strip():
        raise Broken(f"importing {cls.__module__} loads {done.stdout.strip()}: import it where it is used")


def run_python(code: str, *argv: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter that finds the same modules."""
    path = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **env},
        timeout=300,
        check=False,
    )


def gymnasium_api(subject: Subject) -> None:
    """Gymnasium's own `check_env` passes, warnings included."""
    from gymnasium.utils.env_checker import check_env

    if subject.own_tasks:
        raise Unenforceable("tasks were handed in, Gymnasium's reset() draws its own")
    env = subject.make()
    env.spec = gymnasium_spec(subject.spec)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env)
    except (AssertionError, Warning, TypeError, ValueError, AttributeError) as error:
        raise Broken(f"gymnasium's check_env: {error}") from error
    finally:
        env.close()


def tool_schemas_valid(subject: Subject) -> None:
    """Every tool has a unique name, a description and an object schema; reset brings the same tools back."""
    task = subject.tasks(n=1)[0]
    with subject.opened(task) as env:
        first = env.tools
        names = [schema["name"] for schema in first]
        if len(set(names)) != len(names):
            raise Broken(f"tool names are unique, got {names}")
        for schema in first:
            _check_schema(schema)
        env.reset(options={"task": task})
        if canonical_json(list(env.tools)) != canonical_json(list(first)):
            raise Broken("the same task offers other tools after a second reset")


def _check_schema(schema: ToolSchema) -> None:
    name = schema["name"]
    if not _NAME.fullmatch(name):
        raise Broken(f"a tool's name is a word of letters, digits, '_', '.', '-', got {name!r}")
    if not schema["description"].strip():
        raise Broken(f"tool {name!r} has no description: write a docstring")
    parameters = schema["parameters"]
    if parameters.get("type") != "object" or not isinstance(parameters.get("properties"), dict):
        raise Broken(
            f"the parameters of tool {name!r} are no object schema: {canonical_json(parameters)[:100]}"
        )
    for key, value in parameters["properties"].items():
        kind = value.get("type") if isinstance(value, dict) else None
        if (
            kind is not None and not {kind} <= _TYPES
            if isinstance(kind, str)
            else not isinstance(value, dict)
        ):
            raise Broken(f"parameter {key!r} of tool {name!r} has no valid schema: {value!r:.100}")
    lacking = set(parameters.get("required", ())) - set(parameters["properties"])
    if lacking:
        raise Broken(f"tool {name!r} requires parameters that it does not describe: {sorted(lacking)}")


def step_after_end_raises(subject: Subject) -> None:
    """`step` raises before `reset`, after the end and after `close`; it never goes on silently."""
    task = subject.tasks(n=1)[0]
    policy = subject.policy("noop").make(task, 0)
    with subject.opened() as env:
        _must_refuse(env.step, "before reset")
        messages, _ = env.reset(options={"task": task})
        said, step = list(messages), None
        while step is None or not (step.terminated or step.truncated):
            step = env.step(policy.act(said, env.tools))
            said += step.observation
        _must_refuse(env.step, "after the episode's end")
        env.close()
        _must_refuse(env.step, "after close")


def _must_refuse(step: Callable[[Message | str], object], when: str) -> None:
    try:
        step({"role": "assistant", "content": "Anyone there?"})
    except EnvError:
        return
    raise Broken(f"step {when} returned as if nothing had happened, it must raise an EnvError")


def close_idempotent(subject: Subject) -> None:
    """`close` works before `reset`, twice, in the middle of an episode, and from another thread."""
    task = subject.tasks(n=1)[0]
    untouched = subject.make()
    for _ in range(2):
        untouched.close()
    env = subject.make()
    env.reset(options={"task": task})
    failures: list[Exception] = []

    def close() -> None:
        try:
            env.close()
        except Exception as error:  # noqa: BLE001 - carried to the thread that reports it
            failures.append(error)

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    close()
    if failures:
        raise Broken(f"close raised {type(failures[0]).__name__}: {failures[0]}")

"""Configuration to objects: the only factory. Whoever wants other parts builds `Parts` by hand."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers.utils import logging as transformers_logging

from agent_rl import branching, context, credit, curriculum, losses, weights
from agent_rl.config import Config, ConfigError, load, to_toml
from agent_rl.evaluation import env_policies, find_policy, play
from agent_rl.inference import TransformersEngine
from agent_rl.learner import Learner
from agent_rl.learner.model import load_model
from agent_rl.learner.tiny import build_tiny, build_tokenizer
from agent_rl.rendering import Renderer
from agent_rl.rollout import Collector
from agent_rl.storage import Store
from agent_rl.trainer.parts import Parts, Progress, Silent
from agent_rl.types.seams import Sink
from envs.base import Env
from envs.registry import make, spec
from envs.tasksets import by_split
from envs.types import Policy, Task
from tools import formats
from tools.types import ToolSchema

_untyped: Any = transformers_logging
_untyped.disable_progress_bar()  # ours is the only bar on the terminal

_VOCABULARY_TASKS = 1000
"""Tasks from whose transcripts the tiny model's words are learnt, at most."""
_WORD_COUNT = 8
"""A word of the tiny tokenizer occurs in at least this many transcripts; rarer text, values above all, is spelled."""


def build(
    config: Config,
    *,
    progress: Progress | None = None,
    sinks: Sequence[Sink] = (),
    held_out: int | None = None,
) -> Parts:
    """Make everything that `trainer.train` needs, and create or reopen the run's folder.

    `held_out` overrides the number of held-out tasks, for an evaluation of its own.

    Raises:
        ConfigError: a setting names something that does not exist, or the folder holds another run.
    """
    progress = progress or Silent()
    run_dir = Path(config.run_dir)
    # Names first: a folder is made only for a run that can start.
    tool_format = formats.get(config.rendering.tool_format)
    loss, estimator = losses.make(config.loss), credit.make(config.credit)
    room = config.engine.window - config.rollout.max_new_tokens
    if config.branching.name != "at_root" and (why := spec(config.env.id).load().unforkable()):
        raise ConfigError(
            f"branching.name = {config.branching.name!r} continues from earlier turns, but {config.env.id} cannot: "
            f"{why}; set branching.name = 'at_root'"
        )
    rule, manager = branching.make(config.branching), context.make(config.context, room)
    demonstrator = _demonstrator(config) if config.warm_start.steps else None
    train_tasks, demonstrations, eval_tasks = _tasks(config, held_out or config.env.eval_tasks, progress)
    chosen = curriculum.make(config.curriculum, train_tasks, config.seed)
    store = open_store(config, run_dir)
    model, tokenizer = _model(config, run_dir, demonstrations)
    renderer = Renderer(tokenizer, tool_format, history=config.rendering.history)
    engine = TransformersEngine(copy.deepcopy(model), config.engine)
    learner = Learner(
        model,
        config.learner,
        loss,
        reference_model=copy.deepcopy(model) if "reference_logprobs" in loss.needs else None,
    )
    return Parts(
        run_dir=run_dir,
        config=config.trainer,
        warm_start=config.warm_start,
        curriculum=chosen,
        collector=Collector(
            engine=engine,
            renderer=renderer,
            context=manager,
            branching=rule,
            config=config.rollout,
            make_env=_fresh(config.env.id),
            seed=config.seed,
            deterministic=config.deterministic,
        ),
        engine=engine,
        estimator=estimator,
        learner=learner,
        supervised=_supervised(config, model),
        publisher=weights.make(config.weights, engine, run_dir),
        store=store,
        sinks=sinks,
        progress=progress,
        eval_tasks=eval_tasks,
        demonstration_tasks=demonstrations,
        demonstrator=demonstrator,
        seed=config.seed,
    )


def open_store(config: Config, run_dir: Path) -> Store:
    """Create the run's folder, or reopen it when its configuration is the same but for lengths.

    Raises:
        ConfigError: the folder holds a run with other settings.
    """
    effective = config.model_dump(mode="json")
    path = run_dir / "config.toml"
    if not path.exists():
        run_dir.mkdir(parents=True, exist_ok=True)
        store = Store.create(run_dir, effective, config.seed, url=config.storage.url)
        partial = path.with_suffix(".partial")
        partial.write_text(to_toml(config), encoding="utf-8")
        os.replace(partial, path)
        return store
    differing = _differences(load(path).model_dump(mode="json"), effective)
    if differing:
        raise ConfigError(
            f"{run_dir} holds a run with other settings ({', '.join(differing[:4])}); "
            "continue it with its own, or choose another run_dir"
        )
    return Store.open(run_dir, url=config.storage.url)


_MAY_CHANGE = {
    "telemetry.sinks",
    "trainer.steps",
    "trainer.eval_every",
    "trainer.checkpoint_every",
    "trainer.keep_checkpoints",
}


def _differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> list[str]:
    names: list[str] = []
    for key, value in new.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            names += _differences(old[key], value, f"{name}.")
        elif old.get(key) != value and name not in _MAY_CHANGE | {"run_dir"}:
            names.append(f"{name}: {old.get(key)!r} -> {value!r}")
    return names


def _tasks(config: Config, held_out: int, progress: Progress) -> tuple[list[Task], list[Task], list[Task]]:
    """Tasks of reinforcement learning, of the demonstrations, and held-out ones; no two share a task."""
    env = config.env
    if env.tasks_file:
        found = spec(env.id).load().read_tasks(env.tasks_file, split="train")
        for error in found.errors:
            progress.say(str(error))
        splits = by_split(found.tasks)
        train, test = splits["train"], splits["test"] or splits["validation"]
        if not train or not test:
            raise ConfigError(
                f"{env.tasks_file} has {len(train)} train and {len(test)} test tasks; training needs both: "
                "set the field split of each row"
            )
        return *_shared(config, train, progress), test[:held_out]
    cls = spec(env.id).load()
    demos = config.warm_start.demonstrations if config.warm_start.steps else 0
    vocabulary = 0 if demos or not config.model.source.startswith("tiny") else _VOCABULARY_TASKS
    first = demos + vocabulary
    train = cls.tasks("train", first + env.train_tasks, config.seed, **env.options)
    return (
        train[first:],
        train[:demos] or train[:vocabulary],
        cls.tasks("test", held_out, config.seed, **env.options),
    )


def _shared(config: Config, train: list[Task], progress: Progress) -> tuple[list[Task], list[Task]]:
    """The train rows of a file: for reinforcement learning, and for demonstrations. Few rows serve both."""
    demos = config.warm_start.demonstrations if config.warm_start.steps else 0
    if 0 < demos < len(train):
        return train[demos:][: config.env.train_tasks], train[:demos]
    if demos:
        progress.say(
            f"{config.env.tasks_file} has {len(train)} train tasks, no more than warm_start.demonstrations = "
            f"{demos}: both stages use all of them"
        )
    return train[: config.env.train_tasks], train


def _demonstrator(config: Config) -> Callable[[Task, int], Policy]:
    return find_policy(config.env.id, config.warm_start.policy).make


def _model(config: Config, run_dir: Path, demonstrations: Sequence[Task]) -> tuple[Any, Any]:
    if config.model.source.partition(":")[0] != "tiny":
        return load_model(config.model.source, dtype=config.learner.dtype, seed=config.seed)
    folder = run_dir / "model"
    if not folder.exists():
        tokenizer = build_tokenizer(_transcripts(config, demonstrations), min_count=_WORD_COUNT)
        model = build_tiny(
            tokenizer,
            seed=config.seed,
            window=config.engine.window,
            **_tiny_sizes(config.model.source),
        )
        partial = run_dir / "model.partial"
        shutil.rmtree(partial, ignore_errors=True)
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        partial.rename(folder)
    return load_model(str(folder), dtype=config.learner.dtype, seed=config.seed)


def _tiny_sizes(source: str) -> dict[str, int]:
    sizes = source.partition(":")[2]
    if not sizes:
        return {}
    numbers = sizes.split("x")
    if len(numbers) != 3 or not all(n.isdigit() for n in numbers):
        raise ConfigError(
            f"model.source = {source!r}: sizes read hidden x layers x heads, such as tiny:32x1x2"
        )
    hidden, layers, heads = map(int, numbers)
    return {"hidden_size": hidden, "intermediate_size": 3 * hidden, "layers": layers, "heads": heads}


def _transcripts(config: Config, tasks: Sequence[Task]) -> list[str]:
    """Conversations of the gold policy, or else of the demonstrating one, as the tool format writes them."""
    tool_format = formats.get(config.rendering.tool_format)
    policies = env_policies(config.env.id)
    policy = policies.get("gold") or find_policy(config.env.id, config.warm_start.policy)
    tools = _tools(config.env.id, tasks[0])
    system = tool_format.system_text(tools)
    texts: list[str] = []
    for task in tasks[:_VOCABULARY_TASKS]:
        _, messages = play(_fresh(config.env.id), policy.make(task, config.seed), task)
        shown = [
            tool_format.render_calls(m, tools) if m["role"] == "assistant" else m["content"] for m in messages
        ]
        texts.append("\n".join([system, *shown]))
    return texts


def _tools(env_id: str, task: Task) -> Sequence[ToolSchema]:
    env = make(env_id)
    try:
        env.reset(seed=task.seed, options={"task": task})
        return env.tools
    finally:
        env.close()


def _fresh(env_id: str) -> Callable[[], Env]:
    return lambda: make(env_id)


def _supervised(config: Config, model: Any) -> Callable[[], Learner]:
    loss = losses.make(replace_loss(config, "supervised"))
    warm = config.learner.model_copy(
        # One optimiser step each, whatever reinforcement learning makes of its credits.
        update={
            "learning_rate": config.warm_start.learning_rate,
            "total_steps": config.warm_start.steps,
            "passes": 1,
            "mini_batches": 1,
        }
    )
    return lambda: Learner(model, warm, loss)


def replace_loss(config: Config, name: str) -> Any:
    """The loss settings under another name."""
    return type(config.loss)(name=name)

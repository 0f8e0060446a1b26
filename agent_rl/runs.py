"""Whole runs in one call: train, evaluate a run's weights, evaluate a scripted policy."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import shutil
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agent_rl.build import build
from agent_rl.config import Config, ConfigError, load
from agent_rl.evaluation import Report, evaluate
from agent_rl.learner.checkpoint import STATE
from agent_rl.learner.model import load_model
from agent_rl.trainer import Progress, train
from agent_rl.trainer.checkpoint import complete, load_latest
from agent_rl.trainer.parts import Parts
from agent_rl.types.seams import Sink
from agent_rl.weights import MemoryPublisher

T = TypeVar("T")


def train_run(
    config: Config, *, progress: Progress | None = None, sinks: Sequence[Sink] = ()
) -> dict[str, Report]:
    """Train, continuing the run that its folder may hold; returns its evaluations by name."""
    with _alone(Path(config.run_dir)):
        try:
            parts = build(config, progress=progress, sinks=sinks)
        except BaseException:
            for sink in sinks:
                sink.close()
            _withdraw(Path(config.run_dir))
            raise
        try:
            return asyncio.run(_closing(parts, train(parts)))
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk may be what ended the run
                parts.store.set_status("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise


@contextlib.contextmanager
def _alone(run_dir: Path) -> Iterator[None]:
    """Hold the run's lock, which the kernel releases when the process ends, however it ends.

    Raises:
        ConfigError: another process holds it.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"another process trains in {run_dir}; wait for it, or set run_dir") from error
        yield


def _withdraw(run_dir: Path) -> None:
    """Remove the folder of a run that never began."""
    with contextlib.suppress(OSError):  # it holds more than our lock
        if list(run_dir.iterdir()) == [run_dir / ".lock"]:
            (run_dir / ".lock").unlink()
            run_dir.rmdir()


def evaluate_run(
    run_dir: Path,
    *,
    tasks: int,
    samples: int = 1,
    temperature: float = 1.0,
    progress: Progress | None = None,
) -> Report:
    """Evaluate the newest checkpoint of a run on held-out tasks; the run itself is left as it is.

    Raises:
        ConfigError: the run has no checkpoint yet.
    """
    stored = load(run_dir / "config.toml")
    parts = build(stored.model_copy(update={"run_dir": str(run_dir)}), progress=progress, held_out=tasks)
    publisher = MemoryPublisher(parts.engine)  # whatever the run publishes by, its folder is not written to
    if load_latest(parts) is None:
        raise ConfigError(f"{run_dir} has no checkpoint yet; train it: agent-rl train {run_dir}/config.toml")

    async def work() -> Report:
        await publisher.publish("main", parts.learner.version, parts.learner.weights())
        parts.progress.phase("evaluate", len(parts.eval_tasks) * samples)
        report, _ = await evaluate(
            parts.collector,
            parts.eval_tasks,
            name=run_dir.name,
            samples=samples,
            temperature=temperature,
            progress=lambda episode: parts.progress.advance(),
        )
        return report

    return asyncio.run(_closing(parts, work()))


def export_run(run_dir: Path, folder: Path) -> Path:
    """Write the newest weights of a run as a Hugging Face folder, tokenizer included; returns the folder.

    Raises:
        ConfigError: the run has no checkpoint yet, or the folder exists.
    """
    checkpoints = complete(run_dir)
    if not checkpoints:
        raise ConfigError(f"{run_dir} has no checkpoint yet; train it: agent-rl train {run_dir}/config.toml")
    if folder.exists():
        raise ConfigError(f"{folder} exists already; choose another folder")
    source = load(run_dir / "config.toml").model.source
    _, tokenizer = load_model(str(run_dir / "model") if source.startswith("tiny") else source)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(checkpoints[-1] / "learner", partial, ignore=shutil.ignore_patterns(STATE))
    tokenizer.save_pretrained(partial)
    partial.rename(folder)
    return folder


async def _closing(parts: Parts, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        await parts.engine.close()
        for sink in parts.sinks:
            sink.close()

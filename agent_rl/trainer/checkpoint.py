"""Checkpoints of a run: the learner, the curriculum and the step, committed by one rename."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from agent_rl.storage import atomic
from agent_rl.trainer.parts import Parts

_PREFIX = "step-"


def save_checkpoint(parts: Parts, step: int) -> Path:
    """Write `checkpoints/step-NNNNNN`, then drop all but the newest `keep_checkpoints`.

    The folder appears whole or not at all: a crash in between leaves the older checkpoints as they were.

    Raises:
        OSError: the disk is full or not writable; older checkpoints are intact.
    """
    root = parts.run_dir / "checkpoints"
    target, partial = root / f"{_PREFIX}{step:06d}", root / f".partial-{step:06d}"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        parts.learner.save(partial / "learner")
        state = {"step": step, "curriculum": parts.curriculum.state(), "version": parts.learner.version}
        atomic.write(partial / "trainer.json", json.dumps(state).encode())
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)  # on a full disk the next save needs its space
        raise
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    atomic.sync_folder(root)
    parts.store.record_checkpoint(step, parts.learner.version, str(target.relative_to(parts.run_dir)))
    for old in complete(parts.run_dir)[: -parts.config.keep_checkpoints]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def complete(run_dir: Path) -> list[Path]:
    """Committed checkpoints, oldest first."""
    return sorted((run_dir / "checkpoints").glob(f"{_PREFIX}*"))


def load_latest(parts: Parts) -> int | None:
    """Load the newest checkpoint into learner and curriculum.

    Returns:
        Steps that are done, or None when there is no checkpoint.
    """
    checkpoints = complete(parts.run_dir)
    if not checkpoints:
        return None
    newest = checkpoints[-1]
    state = json.loads((newest / "trainer.json").read_text(encoding="utf-8"))
    parts.learner.load(newest / "learner")
    parts.curriculum.restore(state["curriculum"])
    return int(state["step"])


def resume(parts: Parts) -> int | None:
    """Continue after the newest checkpoint: what the store holds beyond it is forgotten and made again.

    Returns:
        Steps that are done, or None when the run starts anew.

    Raises:
        ValueError: more steps are done than are asked for.
    """
    for leftover in (parts.run_dir / "checkpoints").glob(".partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    done = load_latest(parts)
    if done is not None and done > parts.config.steps:
        raise ValueError(
            f"trainer.steps = {parts.config.steps}, but {parts.run_dir} has finished {done} steps; "
            "raise trainer.steps, or choose another run_dir"
        )
    parts.store.truncate_after(-2 if done is None else done - 1)
    parts.store.set_status("running")
    if done is not None:
        parts.progress.say(f"continuing after step {done}")
    return done

"""What this layer raises, and the one boundary where exceptions become faults.

EnvError
├── UnknownEnvError   no environment under this id (also a LookupError); the message names the nearest
├── EpisodeOverError  `step` after the episode ended
├── NotRunningError   `step` or `snapshot` before `reset`, after `close`, or after a fault
├── UnforkableError   `snapshot` where a part of the world cannot be replayed
├── NoGoldError       a task without a solution: the gold policy cannot play it
└── TaskError         this task cannot be run: becomes a fault of kind `task`
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from envs.types import Fault, FaultError, FaultKind, FaultStage
from sandbox.errors import SandboxLost
from tools.errors import ToolTimeout

_RESOURCE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_RETRYABLE: frozenset[FaultKind] = frozenset({"sandbox_lost", "resource"})


class EnvError(RuntimeError):
    """Root of this layer's errors."""


class UnknownEnvError(EnvError, LookupError):
    """No environment is known under this id."""


class EpisodeOverError(EnvError):
    """The episode has ended: call `reset` before the next `step`."""


class NotRunningError(EnvError):
    """There is no live episode: never reset, closed, or stopped by a fault."""


class UnforkableError(EnvError):
    """Episodes of this environment cannot fork: something in its world cannot be replayed."""


class NoGoldError(EnvError):
    """The task has no solution for a gold policy to play."""


class TaskError(EnvError):
    """The task itself cannot be run (a missing key, a file that is gone)."""


def classify(error: Exception, stage: FaultStage, *, interrupted: bool = False) -> Fault:
    """Name what an exception of environment code was: the only place where exceptions become fault kinds.

    `interrupted`: the environment was interrupted by its harness, so whatever broke, broke of that.
    """
    return Fault(
        kind=_kind(error, interrupted),
        stage=stage,
        retryable=_retryable(error, interrupted),
        detail=_detail(error),
    )


def _kind(error: Exception, interrupted: bool) -> FaultKind:
    if interrupted or isinstance(error, ToolTimeout):
        return "deadline"
    if isinstance(error, SandboxLost):
        return "sandbox_lost"
    if isinstance(error, TaskError):
        return "task"
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _RESOURCE_ERRNOS):
        return "resource"
    return "environment"


def _retryable(error: Exception, interrupted: bool) -> bool:
    return _kind(error, interrupted) in _RETRYABLE


def _detail(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


@contextmanager
def fault_boundary(stage: FaultStage, interrupted: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Run environment code; whatever it raises leaves as a `FaultError` naming `stage`.

    A `FaultError` passes unchanged. The model's mistakes never arrive here: the toolbox answers them.
    """
    try:
        yield
    except FaultError:
        raise
    except Exception as error:
        raise FaultError(classify(error, stage, interrupted=interrupted())) from error

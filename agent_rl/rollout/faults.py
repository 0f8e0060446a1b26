"""The one boundary where exceptions of environments and engines become typed faults.

A fault is never a reward: it is retried where that is safe, otherwise the episode is left out of the loss and of
the group's baseline, counted, and shown. What the model did wrong never arrives here; it is an observation.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from envs.types import Fault, FaultError, FaultStage

_RESOURCE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}


@contextmanager
def boundary(stage: FaultStage) -> Iterator[None]:
    """Run a block that belongs to an environment or an engine; whatever it raises becomes a `FaultError`.

    Raises:
        FaultError: always, in place of any other `Exception`. Cancellation passes unchanged.
    """
    try:
        yield
    except FaultError:
        raise
    except TimeoutError as error:
        raise FaultError(Fault(kind="deadline", stage=stage, retryable=True, detail=_text(error))) from error
    except OSError as error:
        kind = "resource" if error.errno in _RESOURCE_ERRNOS else "environment"
        raise FaultError(
            Fault(kind=kind, stage=stage, retryable=kind == "resource", detail=_text(error))  # type: ignore[arg-type]
        ) from error
    except Exception as error:
        kind = "engine" if stage == "generate" else "environment"
        raise FaultError(Fault(kind=kind, stage=stage, detail=_text(error))) from error  # type: ignore[arg-type]


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:2000]

"""Where exceptions become typed faults, on the side of rollouts.

A fault is never a reward: it is retried where that is safe, otherwise the episode is left out of the loss and of
the group's baseline, counted, and shown. What environments raise is classified by `envs.errors`; here stands what
an engine, or a policy in its place, raises. What the model did wrong never arrives: it is an observation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from envs.errors import fault_boundary
from envs.types import Fault, FaultError, FaultStage


@contextmanager
def boundary(stage: FaultStage) -> Iterator[None]:
    """Run a block that belongs to an environment or an engine; whatever it raises becomes a `FaultError`.

    Raises:
        FaultError: always, in place of any other `Exception`. Cancellation passes unchanged.
    """
    if stage != "generate":
        with fault_boundary(stage):
            yield
        return
    try:
        yield
    except FaultError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"[:2000]
        raise FaultError(Fault(kind="engine", stage=stage, detail=detail)) from error

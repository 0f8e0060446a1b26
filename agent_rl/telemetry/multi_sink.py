"""Several sinks as one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from agent_rl.types import Metrics
from agent_rl.types.seams import Sink


class MultiSink:
    """Hands every record to each sink, in order."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self.sinks = tuple(sinks)

    def record(self, step: int, metrics: Metrics) -> None:
        """Record in each; what one raises stops the record."""
        for sink in self.sinks:
            sink.record(step, metrics)

    def close(self) -> None:
        """Close each, the last first, also when one raises."""
        with ExitStack() as stack:
            for sink in self.sinks:
                stack.callback(sink.close)

"""Where the metrics of a step are shown and written: one sink a file."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from agent_rl.telemetry.config import TelemetryConfig
from agent_rl.telemetry.console_sink import ConsoleSink
from agent_rl.telemetry.jsonl_sink import JsonlSink, read_records
from agent_rl.telemetry.learning_curve import draw_learning_curve
from agent_rl.telemetry.multi_sink import MultiSink
from agent_rl.types.names import resolve
from agent_rl.types.seams import Sink

FILE = "metrics.jsonl"


def make(
    config: TelemetryConfig, run_dir: Path | str, *, steps: int | None = None, console: Console | None = None
) -> MultiSink:
    """The configured sinks of a run as one.

    Args:
        config: names of sinks.
        run_dir: folder of the run; JSONL is written to `metrics.jsonl` in it.
        steps: of the whole run, for the estimate.
        console: to print on; the standard output by default.

    Raises:
        ValueError: a name is not known.
        OSError: the folder is not writable.
    """
    builders = {
        "console": lambda: ConsoleSink(console, steps=steps),
        "jsonl": lambda: JsonlSink(Path(run_dir) / FILE),
    }
    sinks: list[Sink] = [resolve("telemetry.sinks", name, builders)() for name in config.sinks]
    return MultiSink(sinks)


__all__ = [
    "FILE",
    "ConsoleSink",
    "JsonlSink",
    "MultiSink",
    "TelemetryConfig",
    "draw_learning_curve",
    "make",
    "read_records",
]

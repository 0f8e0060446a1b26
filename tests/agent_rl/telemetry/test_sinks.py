from __future__ import annotations

import errno
import io
import json
import resource
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agent_rl.telemetry import FILE, ConsoleSink, JsonlSink, MultiSink, TelemetryConfig, make, read_records
from agent_rl.types import Metrics
from agent_rl.types.seams import Sink

METRICS = {
    "rollout/success": 0.531,
    "rollout/reward": 0.614,
    "rollout/zero_spread": 0.25,
    "rollout/turns": 3.14,
    "rollout/tokens_per_s": 1234.4,
    "rollout/episodes": 64.0,
    "rollout/faults": 0.0,
    "step_s": 4.2,
}


def printed(steps: int | None, records: list[tuple[int, Metrics]]) -> list[str]:
    out = io.StringIO()
    ticks = iter(range(100))
    sink = ConsoleSink(Console(file=out, width=80), steps=steps, clock=lambda: next(ticks))
    for step, metrics in records:
        sink.record(step, metrics)
    sink.close()
    return out.getvalue().splitlines()


def test_a_step_is_one_line_of_80_columns() -> None:
    lines = printed(60, [(11, METRICS)])
    assert lines == [
        "        step  success  reward  no spread  turns   tok/s  s/step    left",
        "       12/60     0.53    0.61        25%    3.1   1,234     4.2    3:22",
    ]
    big = dict.fromkeys(METRICS, 99_999.0)
    assert all(len(line) <= 80 for line in printed(100_000, [(99_998, big)]))


def test_what_is_missing_is_a_dash_and_time_is_measured() -> None:
    lines = printed(None, [(0, {}), (1, {"rollout/success": float("nan")})])
    assert lines[1].split() == ["1", "-", "-", "-", "-", "-", "1.0", "-"]
    assert lines[2].split() == ["2", "-", "-", "-", "-", "-", "1.0", "-"]


def test_the_estimate_averages_and_faults_are_shown() -> None:
    lines = printed(1001, [(0, {"step_s": 2.0}), (1, {**METRICS, "step_s": 6.0, "rollout/faults": 3.0})])
    assert lines[1].split()[-1] == "33:20"
    assert lines[2].split()[-1] == "1:06:36"
    assert lines[3].split() == ["3", "of", "64", "episodes", "faulted"]


def test_the_header_returns() -> None:
    assert sum("success" in line for line in printed(50, [(i, METRICS) for i in range(41)])) == 3


def test_jsonl_appends_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a" / FILE
    sink = JsonlSink(path)
    sink.record(0, {"x": 1.5, "y": float("inf")})
    [record] = [json.loads(line) for line in path.read_text().splitlines()]
    assert {k: v for k, v in record.items() if k != "time"} == {"step": 0, "x": 1.5, "y": None}
    sink.close()


@pytest.mark.parametrize("cut", ['{"step": 1, "x"', "x" * 200_000, "\n", ""])
def test_a_cut_last_line_is_dropped_on_resume(tmp_path: Path, cut: str) -> None:
    path = tmp_path / FILE
    for step in range(2):
        sink = JsonlSink(path)
        sink.record(step, {"x": float(step)})
        sink.close()
    content = path.read_text()
    if cut.strip():
        path.write_text(content + cut)
        assert [r["x"] for r in read_records(path)] == [0.0, 1.0]
    sink = JsonlSink(path)
    sink.record(1, {"x": 9.0})
    sink.close()
    assert [(r["step"], r["x"]) for r in read_records(path)] == [(0, 0.0), (1, 9.0)]


def test_a_file_of_one_cut_line_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text('{"st')
    sink = JsonlSink(path)
    sink.record(0, {})
    sink.close()
    assert [r["step"] for r in read_records(path)] == [0]
    path.write_text("[]\n")
    with pytest.raises(ValueError, match=r"metrics\.jsonl:1: a line must be an object with a step"):
        read_records(path)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / FILE
    sink = JsonlSink(path)
    sink.record(0, {"x": 1.0})
    size = path.stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, old[1]))
    try:
        with pytest.raises(OSError, match=r"metrics\.jsonl") as caught:
            sink.record(1, {"x": 2.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert caught.value.filename == str(path)
    assert path.stat().st_size == size
    sink.record(1, {"x": 2.0})
    sink.close()
    assert [r["step"] for r in read_records(path)] == [0, 1]


class Recorder:
    """A sink that remembers, and fails to close when told to."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[Any] = []
        self.fails = fails

    def record(self, step: int, metrics: Metrics) -> None:
        self.seen.append((step, dict(metrics)))

    def close(self) -> None:
        self.seen.append("closed")
        if self.fails:
            raise OSError("disk")


def test_several_sinks_are_one() -> None:
    first, second = Recorder(), Recorder(fails=True)
    sink = MultiSink([first, second])
    assert isinstance(sink, Sink)
    sink.record(3, {"x": 1.0})
    with pytest.raises(OSError, match="disk"):
        sink.close()
    assert first.seen == second.seen == [(3, {"x": 1.0}), "closed"]


def test_sinks_are_made_by_name(tmp_path: Path) -> None:
    out = io.StringIO()
    sink = make(TelemetryConfig(), tmp_path, steps=3, console=Console(file=out, width=80))
    sink.record(0, METRICS)
    sink.close()
    assert "1/3" in out.getvalue()
    assert [r["step"] for r in read_records(tmp_path / FILE)] == [0]
    named = TelemetryConfig(sinks=(f"{__name__}:Recorder",))
    assert isinstance(make(named, tmp_path).sinks[0], Recorder)
    with pytest.raises(ValueError, match=r"Did you mean 'jsonl'\?"):
        make(TelemetryConfig(sinks=("json",)), tmp_path)

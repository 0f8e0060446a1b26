"""Create, exec, live-shell exec, fork and close at 1, 16, 64 and 256 at once, beside the bare floor and peers.

    python benchmarks/sandbox.py [--concurrent 1 16 64 256] [--samples 256] [--json FILE] [--backend bubblewrap]
                                 [--docker unix:///run/docker.sock --image NAME] [--swerex]

Every thread does one thing after the other, all threads the same thing at the same time. The floor is measured in the
same run at the same concurrency: for create, exec, fork and close a bare bubblewrap of `true` with the same flags, for
a command in a live shell a round trip through pipes to a bash on the host, which gives a line of output and no more.
`pipe+code` gives what a shell must: output and errors apart, and the exit code on a pipe of its own with the script out
of the command's reach, without which output could pass for the end. A ratio is of medians. An exec makes a whole
namespace, so that it is a launch, while a command in a live shell is not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # this folder's files are called like packages

import sandbox  # noqa: E402
from benchmarks import sandbox_floors, sandbox_peers  # noqa: E402
from sandbox import Sandbox, SandboxSpec  # noqa: E402

LAUNCH, PIPE, SAFE_PIPE = "bare bwrap", "bare pipe", "pipe+code"
FLOORS = {"create": LAUNCH, "exec": LAUNCH, "fork": LAUNCH, "close": LAUNCH, "shell exec": PIPE}
AIMS = {"create": 3.0, "fork": 3.0, "shell exec": 3.0}


@dataclass(frozen=True)
class Row:
    """One thing at one concurrency; seconds."""

    system: str
    what: str
    concurrent: int
    samples: int
    success: float
    p50: float
    p95: float
    p99: float
    ratio: float | None = None
    safe_ratio: float | None = None
    """Of a live-shell exec to `pipe+code`."""


Job = Callable[[int], object]
"""Does the thing once, for the thread of that number."""


def measure(job: Job, concurrent: int, samples: int) -> tuple[list[float], int]:
    """Seconds of each success, and how many failed; every thread does the same number."""
    times: list[float] = []
    failed = [0]
    lock, start = threading.Lock(), threading.Barrier(concurrent)

    def work(number: int) -> None:
        start.wait()
        for _ in range(samples):
            began = time.perf_counter()
            try:
                job(number)
            except (sandbox.SandboxError, OSError, AssertionError, subprocess.SubprocessError):
                with lock:
                    failed[0] += 1
            else:
                with lock:
                    times.append(time.perf_counter() - began)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(concurrent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, failed[0]


def row(system: str, what: str, concurrent: int, times: list[float], failed: int) -> Row:
    ordered = sorted(times) or [float("nan")]
    p50, p95, p99 = (ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0.5, 0.95, 0.99))
    total = len(times) + failed
    return Row(system, what, concurrent, total, len(times) / max(total, 1), p50, p95, p99)


def turns(concurrent: int, samples: int) -> int:
    """Commands of each thread: so many that all threads are at it at once for most of the time."""
    return max(64, 4 * samples // concurrent)


def ours(backend: str, concurrent: int, samples: int) -> Iterator[Row]:
    spec = SandboxSpec(files={"f": b"x"})
    sandbox.create(spec, backend).close()  # what a process prepares once is no part of a start
    boxes: list[list[Sandbox]] = [[] for _ in range(concurrent)]
    children: list[list[Sandbox]] = [[] for _ in range(concurrent)]
    every = max(2, samples // concurrent)

    def record(what: str, job: Job, count: int = every) -> Row:
        return row("agent-rl", what, concurrent, *measure(job, concurrent, count))

    def execute(number: int) -> None:
        assert boxes[number][0].exec(["/bin/true"]).ok

    yield record("create", lambda n: boxes[n].append(sandbox.create(spec, backend)))
    yield record("exec", execute)
    yield record("fork", lambda n: children[n].append(boxes[n][0].fork()))
    yield record("close", lambda n: children[n].pop().close(), min(map(len, children)))
    shells = [own[0].shell() for own in boxes]

    def command(number: int) -> None:
        assert shells[number].run("echo done").stdout.text == "done\n"

    measure(command, concurrent, 1)
    yield record("shell exec", command, turns(concurrent, samples))
    for own in boxes:
        for box in own:
            box.close()


def at(concurrent: int, options: argparse.Namespace) -> Iterator[Row]:
    """All rows of one concurrency, floors first."""
    every = max(2, options.samples // concurrent)
    floors = {LAUNCH: row("floor", LAUNCH, concurrent, *measure(options.bare, concurrent, every))}
    for name, pipe in ((PIPE, sandbox_floors.bare_pipe), (SAFE_PIPE, sandbox_floors.safe_pipe)):
        with pipe(concurrent) as round_trip:
            measure(round_trip, concurrent, 1)
            times = measure(round_trip, concurrent, turns(concurrent, options.samples))
            floors[name] = row("floor", name, concurrent, *times)
    yield from floors.values()
    rows = list(ours(options.backend, concurrent, options.samples))
    if options.docker and concurrent <= 64:
        rows += [row("docker", *found) for found in sandbox_peers.docker(options, concurrent, measure)]
    if options.swerex:
        rows += [row("swe-rex*", *found) for found in sandbox_peers.swerex(concurrent, options.samples)]
    for one in rows:
        safe = one.p50 / floors[SAFE_PIPE].p50 if one.what == "shell exec" else None
        yield replace(one, ratio=one.p50 / floors[FLOORS[one.what]].p50, safe_ratio=safe)


def show(one: Row) -> None:
    ratio = f"{one.ratio:6.2f}x" if one.ratio is not None else " " * 7
    aim = AIMS.get(one.what) if one.system == "agent-rl" else None
    verdict = (
        "" if aim is None or one.ratio is None else f" aim {aim:g}x {'ok' if one.ratio <= aim else 'MISSED'}"
    )
    if one.safe_ratio is not None:
        verdict += f" ({one.safe_ratio:.2f}x {SAFE_PIPE})"
    times = "".join(f"{1000 * value:9.2f}" for value in (one.p50, one.p95, one.p99))
    print(
        f"{one.concurrent:>4} {one.system:<9} {one.what:<11}{one.samples:>6}{one.success:>7.1%}{times} "
        f"{ratio}{verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrent", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument(
        "--samples", type=int, default=256, help="of each thing, over all threads; at least 2 each"
    )
    parser.add_argument("--backend", default="bubblewrap")
    parser.add_argument("--json", type=Path, help="file to write the rows to")
    parser.add_argument("--docker", help="address of a Docker Engine to compare with")
    parser.add_argument("--image", help="image for it; it needs /bin/true and /bin/sleep")
    parser.add_argument(
        "--swerex", action="store_true", help="compare with swe-rex local (* no isolation at all)"
    )
    options = parser.parse_args()
    if options.docker and not options.image:
        parser.error("--docker needs --image")
    options.bare = sandbox_floors.bare_bwrap()
    print(f"{platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}; milliseconds")
    print(f"{'at':>4} {'system':<9} {'what':<11}{'n':>6}{'ok':>7}{'p50':>9}{'p95':>9}{'p99':>9} {'ratio':>7}")
    rows: list[Row] = []
    for concurrent in options.concurrent:
        for one in at(concurrent, options):
            show(one)
            rows.append(one)
    if options.swerex:
        print("* swe-rex local runs on the host itself: nothing is isolated, bounded or forked")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1))


if __name__ == "__main__":
    main()

"""Episodes a second and milliseconds a turn of every family with its gold policy, in process and over HTTP.

    python benchmarks/envs.py [--envs sql-v1 code-v1 ...] [--concurrent 1 16 64] [--episodes 64] [--json FILE]
    python benchmarks/envs.py --live 1000 [--envs sql-v1 search-v1]

Threads of one process play fresh tasks of the test split, the same for every row of a family. `ours` is the share of
the episodes' time that is not spent in the world: in `setup`, the tools, `grade` and `teardown` of the family. Over
HTTP a server of `agent-rl serve env` runs in a process of its own on the same machine; the ratio is of milliseconds a
turn to those in process at the same concurrency. With `--live`, so many episodes are begun and played up to their last
turn in one process, all alive at once, and the memory of that process and its descendants is told.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)  # this folder's files are called like packages

from agent_rl.evaluation import Outcome, evaluate_policy, find_policy  # noqa: E402
from envs import registry  # noqa: E402
from envs.base import Env  # noqa: E402
from envs.types import Policy, Task  # noqa: E402
from sandbox.proctree import children  # noqa: E402
from tools.schema import tools_of  # noqa: E402

FAMILIES = ("sql-v1", "code-v1", "search-v1", "web-v1", "swe-v1")
LAST = ("submit", "finish")
"""Tools that end an episode."""
WORLD = ("setup", "grade", "teardown", "load_state", "copy_state")


@dataclass(frozen=True)
class Row:
    """One family at one concurrency."""

    env: str
    where: str
    concurrent: int
    episodes: int
    faults: int
    solved: int
    episodes_per_s: float
    ms_per_turn: float
    """Of an episode's seconds by its turns, reset and grading included."""
    ours: float | None
    """Share of the episodes' time outside the world; known in process alone."""
    ratio: float | None = None
    """Of milliseconds a turn to those in process at the same concurrency."""


class World:
    """Seconds that were spent in the worlds of all environments that it made."""

    def __init__(self, make: Callable[[], Env]) -> None:
        self._make, self._lock, self.seconds = make, threading.Lock(), 0.0

    def __call__(self) -> Env:
        env = self._make()
        names = [*WORLD, *(tool.function.__name__ for tool in tools_of(env))]
        for name in names:
            if hasattr(env, name):
                setattr(env, name, self._timed(getattr(env, name)))
        return env

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.perf_counter() - began
                with self._lock:
                    self.seconds += spent

        return timed


def measure(env: str, where: str, make: Callable[[], Env], tasks: Sequence[Task], concurrent: int) -> Row:
    """All tasks once, by so many threads."""
    world = World(make) if where == "process" else None
    gold = find_policy(env, "gold").make
    outcomes: list[Outcome] = []
    report = evaluate_policy(
        world or make, gold, tasks, name="gold", threads=concurrent, progress=outcomes.append
    )
    seconds = sum(outcome.seconds for outcome in outcomes)
    turns = sum(outcome.turns for outcome in outcomes)
    return Row(
        env=env,
        where=where,
        concurrent=concurrent,
        episodes=len(tasks),
        faults=sum(outcome.fault is not None for outcome in outcomes),
        solved=sum(outcome.success for outcome in outcomes),
        episodes_per_s=len(tasks) / report.seconds,
        ms_per_turn=1000 * seconds / max(turns, 1),
        ours=1 - world.seconds / seconds if world is not None else None,
    )


@contextlib.contextmanager
def served(env: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "agent_rl.cli", "serve", "env", env, "--port", "0", "--answers"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.search(r"http://\S+", said)
            if found is None:
                raise SystemExit(f"the server of {env} did not start: {said}")
            yield found[0]
        finally:
            process.terminate()


def throughput(envs: Sequence[str], levels: Sequence[int], episodes: int) -> Iterator[Row]:
    """Every family at every concurrency, in process and then over HTTP."""
    for env in envs:
        tasks = registry.spec(env).load().tasks("test", episodes, 0)
        measure(
            env, "process", lambda env=env: registry.make(env), tasks[:1], 1
        )  # what a process prepares once
        inside: dict[int, float] = {}
        for concurrent in levels:
            row = measure(env, "process", lambda env=env: registry.make(env), tasks, concurrent)
            inside[concurrent] = row.ms_per_turn
            yield row
        with served(env) as address:
            measure(env, "http", lambda: registry.make(address), tasks[:1], 1)
            for concurrent in levels:
                row = measure(env, "http", lambda: registry.make(address), tasks, concurrent)
                yield Row(**{**asdict(row), "ratio": row.ms_per_turn / inside[concurrent]})


def live(env: str, episodes: int) -> dict[str, Any]:
    """So many episodes alive at once, each played up to its last turn."""
    tasks = registry.spec(env).load().tasks("test", episodes, 0)
    gold = find_policy(env, "gold").make
    before, began = resident(), time.perf_counter()
    alive = [_nearly_played(registry.make(env), gold(task, 0), task) for task in tasks]
    row = {
        "env": env,
        "episodes": len(alive),
        "mib": round((resident() - before) / 2**20),
        "all_mib": round(resident() / 2**20),
        "seconds": round(time.perf_counter() - began, 1),
    }
    for one in alive:
        one.close()
    return row


def _nearly_played(env: Env, policy: Policy, task: Task) -> Env:
    said, _ = env.reset(seed=task.seed, options={"task": task})
    while True:
        action = policy.act(said, env.tools)
        calls = action.get("tool_calls", ())
        if not calls or any(call["function"]["name"] in LAST for call in calls):
            return env
        said = [*said, action, *env.step(action).observation]


def resident() -> int:
    """Bytes of this process and its descendants."""
    total, waiting = 0, [os.getpid()]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            total += pages * os.sysconf("SC_PAGE_SIZE")
            waiting += children(one)
    return total


def show(row: Row) -> None:
    more = f"ours {row.ours:.0%}" if row.ours is not None else f"{row.ratio:.2f}x in process"
    print(
        f"{row.env:<10} {row.where:<8} {row.concurrent:>3}  {row.episodes_per_s:8.2f} episodes/s "
        f"{row.ms_per_turn:9.2f} ms/turn  solved {row.solved}/{row.episodes}  faults {row.faults}  {more}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=None)
    parser.add_argument("--concurrent", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--live", type=int, default=0)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    found: list[dict[str, Any]] = []
    if chosen.live:
        for env in chosen.envs or ("sql-v1", "search-v1"):
            found.append(live(env, chosen.live))
            print(found[-1], flush=True)
    else:
        for row in throughput(chosen.envs or FAMILIES, chosen.concurrent, chosen.episodes):
            show(row)
            found.append(asdict(row))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

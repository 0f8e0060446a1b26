"""The peers of benchmarks/sandbox.py: the Docker command line, and swe-rex local in an environment of its own."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

Times = tuple[list[float], int]
Found = tuple[str, int, list[float], int]
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "agent-rl" / "swe-rex"

SWEREX = """
import asyncio, json, sys, time
from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest

concurrent, every = int(sys.argv[1]), int(sys.argv[2])
found = {}

async def timed(what, made):
    times, failed = found.setdefault(what, ([], [0]))
    began = time.perf_counter()
    try:
        result = await made
    except Exception:
        failed[0] += 1
        return None
    times.append(time.perf_counter() - began)
    return result

async def start():
    deployment = LocalDeployment()
    await deployment.start()
    await deployment.runtime.create_session(CreateBashSessionRequest())
    return deployment

async def each(deployments, what, make, times=1):
    async def one(d):
        for _ in range(times):
            await timed(what, make(d))
    await asyncio.gather(*(one(d) for d in deployments if d is not None))

async def main():
    for _ in range(every):
        made = await asyncio.gather(*(timed("create", start()) for _ in range(concurrent)))
        await each(made, "exec", lambda d: d.runtime.execute(Command(command=["/bin/true"])))
        await each(made, "shell exec", lambda d: d.runtime.run_in_session(BashAction(command="echo done")), 4)
        await each(made, "close", lambda d: d.stop())

asyncio.run(main())
print(json.dumps({what: [times, failed[0]] for what, (times, failed) in found.items()}))
"""


def docker(
    options: argparse.Namespace,
    concurrent: int,
    measure: Callable[[Callable[[int], object], int, int], Times],
) -> Iterator[Found]:
    """`docker run`, `exec`, `commit` and `rm`; fewer samples, because each takes long."""
    name = f"bench-{secrets.token_hex(4)}"
    containers: list[list[str]] = [[] for _ in range(concurrent)]
    images: list[str] = []

    def call(*words: str) -> str:
        command = ["docker", "-H", options.docker, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def start(number: int) -> None:
        limits = ["--network", "none", "--memory", "512m", "--pids-limit", "64", "--cap-drop", "ALL"]
        containers[number].append(
            call("run", "-d", "--label", name, *limits, options.image, "/bin/sleep", "1000")
        )

    every = max(2, min(options.samples, 64) // concurrent)
    try:
        yield "create", concurrent, *measure(start, concurrent, every)
        yield (
            "exec",
            concurrent,
            *measure(lambda n: call("exec", containers[n][0], "/bin/true"), concurrent, every),
        )
        commit = lambda n: images.append(call("commit", containers[n][0]))  # noqa: E731
        yield "fork", concurrent, *measure(commit, concurrent, every)
        left = min(map(len, containers))
        yield "close", concurrent, *measure(lambda n: call("rm", "-f", containers[n].pop()), concurrent, left)
    finally:
        for kind, words in (("ps", ("rm", "-f")), ("", ("rmi", "-f"))):
            left_over = call("ps", "-aq", "--filter", f"label={name}").split() if kind else images
            if left_over:
                call(*words, *left_over)


def swerex(concurrent: int, samples: int) -> Iterator[Found]:
    """Its local deployment, driven as its users do: all calls from one event loop. It cannot fork."""
    python = _environment()
    every = max(1, min(samples, 64) // concurrent)
    done = subprocess.run(
        [python, "-c", SWEREX, str(concurrent), str(every)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(f"swe-rex failed at {concurrent}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return
    for what, (times, failed) in json.loads(done.stdout.splitlines()[-1]).items():
        yield what, concurrent, times, failed


def _environment() -> str:
    python = _CACHE / "bin" / "python"
    if not (_CACHE / ".ready").exists():
        subprocess.run([sys.executable, "-m", "venv", str(_CACHE)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-qq", "swe-rex"], check=True)
        (_CACHE / ".ready").touch()
    return str(python)

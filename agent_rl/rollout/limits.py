"""Bounded threads for environments, with deadlines and with waiting measured apart from running."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from agent_rl.rollout.faults import boundary
from envs.base import Env
from envs.types import Fault, FaultError, FaultStage

T = TypeVar("T")


class EnvThreads:
    """Runs the blocking calls of environments on a bounded pool.

    Threads cannot be killed: after a deadline the environment is interrupted and closed, its thread is left to
    end by itself, and the pool is given a fresh thread in its place.
    """

    def __init__(self, threads: int, timeout_s: float) -> None:
        self.threads = threads
        self.timeout_s = timeout_s
        self.abandoned = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="env")

    async def call(self, env: Env | None, stage: FaultStage, work: Callable[[], T]) -> tuple[T, float, float]:
        """Run `work` and return its result with seconds queued and seconds run.

        Raises:
            FaultError: what `work` raised, typed; kind `deadline` when it outlasted `timeout_s`.
        """
        asked = time.perf_counter()
        started: list[float] = []

        def timed() -> T:
            started.append(time.perf_counter())
            return work()

        with boundary(stage):
            future = asyncio.get_running_loop().run_in_executor(self._pool, timed)
            try:
                while True:
                    # The deadline counts from when the work starts, not from when it queued.
                    waited = time.perf_counter() - started[0] if started else 0.0
                    done, _ = await asyncio.wait({future}, timeout=max(self.timeout_s - waited, 0.01))
                    if done:
                        break
                    if started and time.perf_counter() - started[0] >= self.timeout_s:
                        self._abandon(env)
                        future.add_done_callback(lambda f: f.cancelled() or f.exception())
                        detail = f"{stage} took longer than {self.timeout_s} s and was interrupted"
                        raise FaultError(Fault(kind="deadline", stage=stage, detail=detail))
            except asyncio.CancelledError:
                if not future.cancel():
                    self._abandon(env)
                    future.add_done_callback(lambda f: f.cancelled() or f.exception())
                raise
            result = future.result()
        return result, started[0] - asked, time.perf_counter() - started[0]

    def _abandon(self, env: Env | None) -> None:
        self.abandoned += 1
        if env is not None:
            env.interrupt()
        old, self._pool = self._pool, ThreadPoolExecutor(self.threads, thread_name_prefix="env")
        old.shutdown(wait=False)

    def close(self) -> None:
        """Wait for running calls and stop."""
        self._pool.shutdown(wait=self.abandoned == 0, cancel_futures=True)


async def close_quietly(threads: EnvThreads, env: Env) -> None:
    """Close an environment; a fault while closing is swallowed, since the episode is over."""
    with contextlib.suppress(FaultError):
        await threads.call(env, "close", env.close)

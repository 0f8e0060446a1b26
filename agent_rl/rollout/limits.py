"""Bounded threads for environments, with deadlines and with waiting measured apart from running."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from agent_rl.rollout.faults import boundary
from envs.base import Env
from envs.types import Fault, FaultError, FaultStage

T = TypeVar("T")


class EnvThreads:
    """Runs the blocking calls of environments, at most `threads` at a time, each in a thread of its own.

    Threads cannot be killed: after a deadline the environment is interrupted, its thread is left behind as a
    daemon, and its place is free at once. So neither other calls nor the end of the process wait for it.
    """

    def __init__(self, threads: int, timeout_s: float) -> None:
        self.threads = threads
        self.timeout_s = timeout_s
        self.abandoned = 0
        self._places: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def call(
        self,
        env: Env | None,
        stage: FaultStage,
        work: Callable[[], T],
        *,
        discard: Callable[[T], object] | None = None,
    ) -> tuple[T, float, float]:
        """Run `work` and return its result with seconds queued and seconds run.

        Args:
            env: interrupted when nobody waits for `work` any more.
            stage: for the fault.
            work: blocks.
            discard: releases a result that comes after the deadline, or after the caller was cancelled.

        Raises:
            FaultError: what `work` raised, typed; kind `deadline` when it outlasted `timeout_s`.
        """
        asked = time.perf_counter()
        with boundary(stage):
            async with self._place():
                began = time.perf_counter()  # the deadline counts from here, not from when the call queued
                outcome = _start(work)
                future = asyncio.wrap_future(outcome)
                try:
                    done, _ = await asyncio.wait({future}, timeout=self.timeout_s)
                except asyncio.CancelledError:
                    self._abandon(env, outcome, discard)
                    raise
                if not done:
                    future.cancel()
                    self._abandon(env, outcome, discard)
                    detail = f"{stage} took longer than {self.timeout_s} s and was interrupted"
                    raise FaultError(Fault(kind="deadline", stage=stage, detail=detail))
                return future.result(), began - asked, time.perf_counter() - began

    def _place(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._places is None or self._places[0] is not loop:
            self._places = loop, asyncio.Semaphore(self.threads)
        return self._places[1]

    def _abandon(self, env: Env | None, outcome: Future[T], discard: Callable[[T], object] | None) -> None:
        self.abandoned += 1

        def release(late: Future[T]) -> None:
            if discard is not None and late.exception() is None:
                with contextlib.suppress(FaultError), boundary("close"):
                    discard(late.result())

        outcome.add_done_callback(release)
        if env is not None:
            with contextlib.suppress(FaultError), boundary("close"):
                env.interrupt()


def _start(work: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # a running call cannot be cancelled

    def run() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - the boundary between threads: raised again by the caller
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=run, name="env", daemon=True).start()
    return outcome


async def close_quietly(threads: EnvThreads, env: Env) -> None:
    """Close an environment; a fault while closing is swallowed, since the episode is over."""
    try:
        with contextlib.suppress(FaultError):
            await threads.call(env, "close", env.close)
    except asyncio.CancelledError:
        _start(env.close)  # cancelled perhaps while it still waited for a place; closing twice is safe
        raise


async def together(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run jobs at the same time. When one raises, the others are cancelled and have ended before it is raised."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

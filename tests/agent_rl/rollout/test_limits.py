"""Threads of environments: deadlines free their place, cancelling interrupts, late results are released."""

import asyncio
import threading
import time

import pytest

from agent_rl.rollout.limits import EnvThreads, together
from envs.types import FaultError
from tests.agent_rl import toy


class Watched(toy.LookEnv):
    def __init__(self) -> None:
        super().__init__()
        self.interrupts, self.closes = threading.Event(), threading.Event()

    def interrupt(self) -> None:
        super().interrupt()
        self.interrupts.set()

    def close(self) -> None:
        super().close()
        self.closes.set()


@pytest.fixture
def never():
    event = threading.Event()
    yield event
    event.set()


def test_a_call_that_queues_behind_a_hanging_one_still_runs(never):
    threads = EnvThreads(1, 0.2)

    async def run():
        hanging = asyncio.ensure_future(threads.call(None, "step", never.wait))
        await asyncio.sleep(0)
        queued = asyncio.ensure_future(threads.call(None, "step", lambda: 7))
        with pytest.raises(FaultError, match=r"longer than 0\.2 s"):
            await hanging
        return await asyncio.wait_for(queued, 5)

    value, queue_s, run_s = asyncio.run(run())
    assert value == 7
    assert queue_s > 0.15 > run_s
    assert threads.abandoned == 1


def test_at_most_the_given_number_of_calls_run_at_once():
    threads, running, most = EnvThreads(2, 10), [], []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    async def run():
        await asyncio.gather(*(threads.call(None, "step", work) for _ in range(8)))

    asyncio.run(run())
    asyncio.run(run())  # another event loop
    assert max(most) == 2


def test_cancelling_interrupts_what_runs_and_does_not_wait_for_it(never):
    env, threads = Watched(), EnvThreads(1, 30)

    async def run():
        call = asyncio.ensure_future(threads.call(env, "step", never.wait))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.wait({call}, timeout=5)
        assert call.cancelled()

    asyncio.run(run())
    assert env.interrupts.is_set()


def test_a_result_that_comes_too_late_is_released(never):
    env, threads = Watched(), EnvThreads(1, 0.1)

    def restore():
        never.wait()
        return env

    async def run():
        with pytest.raises(FaultError):
            await threads.call(None, "restore", restore, discard=Watched.close)

    asyncio.run(run())
    assert not env.closes.is_set()
    never.set()
    assert env.closes.wait(5)


def test_when_one_job_fails_the_others_have_ended_before_it_is_raised():
    ended = []

    async def long():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    async def bad():
        await asyncio.sleep(0)
        raise ValueError("bad")

    async def run():
        with pytest.raises(ValueError, match="bad"):
            await together([long(), bad(), long()])
        return len(ended)

    assert asyncio.run(run()) == 2

"""Places, queues and kept results, without a server."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.remote.gate import Gate
from sandbox.remote.incoming import Buffers
from sandbox.remote.once import Answer, Results
from sandbox.remote.refusals import Refused


def test_a_free_place_goes_to_the_client_with_the_fewest() -> None:
    async def scenario() -> list[str]:
        gate, order = Gate(2, 10, 10), []

        async def use(client: str) -> None:
            async with gate.place(client):
                order.append(client)
                await asyncio.sleep(0.01)

        await asyncio.gather(*(use(client) for client in ["a", "a", "a", "a", "b"]))
        assert gate.waiting == 0
        return order

    order = asyncio.run(scenario())
    assert order.index("b") == 2 or order.index("b") == 3
    assert sorted(order) == ["a", "a", "a", "a", "b"]


def test_cancelled_and_shut() -> None:
    async def scenario() -> None:
        gate = Gate(1, 10, 10)
        async with gate.place("a"):
            waiting = asyncio.create_task(_enter(gate))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert gate.waiting == 0
        async with gate.place("a"):
            waiting = asyncio.create_task(_enter(gate))
            await asyncio.sleep(0)
            gate.shut()
            with pytest.raises(Refused, match="shutting down"):
                await waiting
        with pytest.raises(Refused):
            await _enter(gate)

    asyncio.run(scenario())


def test_a_client_has_so_many_at_most() -> None:
    async def scenario() -> None:
        gate = Gate(5, 5, 1)
        async with gate.place("a"):
            with pytest.raises(Refused, match="this client"):
                await _enter(gate)
            async with gate.place("b"):
                pass
        await _enter(gate)

    asyncio.run(scenario())


async def _enter(gate: Gate) -> None:
    async with gate.place("a"):
        pass


def test_buffers_are_given_in_turn() -> None:
    async def scenario() -> None:
        buffers = Buffers(10)
        await buffers.take(8, 1)
        with pytest.raises(Refused, match="large"):
            await buffers.take(5, 0.01)
        waiting = asyncio.create_task(buffers.take(5, 5))
        await asyncio.sleep(0)
        buffers.give(8)
        await waiting
        await buffers.take(5, 0.01)

    asyncio.run(scenario())


def test_results_are_kept_by_size_number_and_time() -> None:
    async def scenario() -> None:
        results, runs = Results(keep_s=0.05, keep_number=3, keep_bytes=100), []

        async def work(size: int, started_nothing: bool = False) -> Answer:
            runs.append(size)
            return Answer(200, [bytes(size)], started_nothing=started_nothing)

        for number, size in ((1, 200), (2, 10), (3, 60), (4, 60)):
            await results.start(number, b"", lambda size=size: work(size))
            await asyncio.sleep(0)
        assert [results.knows(n) for n in (1, 2, 3, 4)] == [False, False, False, True]
        with pytest.raises(Refused, match="not run again"):
            results.start(3, b"", lambda: work(0))
        with pytest.raises(Refused, match="another body"):
            results.start(4, b"x", lambda: work(0))
        await results.start(9, b"", lambda: work(1, started_nothing=True))
        await asyncio.sleep(0)
        assert not results.knows(9)  # it may come again
        await results.start(9, b"", lambda: work(2))
        await asyncio.sleep(0.1)
        with pytest.raises(Refused, match="not run again"):
            results.start(4, b"", lambda: work(0))
        assert runs == [200, 10, 60, 60, 1, 2]

    asyncio.run(scenario())

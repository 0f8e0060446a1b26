from __future__ import annotations

import asyncio

import numpy as np
import pytest

from agent_rl.inference import ScriptedEngine
from agent_rl.types.seams import Sampling
from envs.types import Fault, FaultError

PREFIX = np.array([1, 2, 3], dtype=np.int32)
ASK = Sampling(max_new_tokens=4, stop_ids=(9,))


def test_a_list_is_played_in_order() -> None:
    fault = Fault(kind="engine", stage="generate", retryable=True, detail="said so")

    async def main() -> None:
        engine = ScriptedEngine(
            [[5, 9, 6], FaultError(fault), [5, 6, 7, 8, 9], [5]], window=16, vocab=10, version=3
        )
        first = await engine.generate(PREFIX, ASK)
        assert (first.token_ids.tolist(), first.stop) == ([5, 9], "stop")
        assert first.versions.tolist() == [3, 3]
        with pytest.raises(FaultError, match="said so"):
            await engine.generate(PREFIX, ASK)
        third = await engine.generate(PREFIX, ASK)
        assert (third.token_ids.tolist(), third.stop) == ([5, 6, 7, 8], "length")
        fourth = await engine.generate(PREFIX, ASK)
        assert (fourth.token_ids.tolist(), fourth.stop) == ([5, 9], "stop")
        with pytest.raises(IndexError, match="4 answers; request 5"):
            await engine.generate(PREFIX, ASK)
        assert len(engine.requests) == 5

    asyncio.run(main())


def test_delays_overlap_and_close_ends_them() -> None:
    async def main() -> None:
        engine = ScriptedEngine(lambda prefix, sampling: [9], window=16, vocab=10, delay_s=60.0)
        tasks = [asyncio.ensure_future(engine.generate(PREFIX, ASK)) for _ in range(3)]
        await asyncio.sleep(0)
        await engine.close()
        assert [done.stop for done in await asyncio.gather(*tasks)] == ["cancelled"] * 3

    asyncio.run(main())


def test_versions_follow_loads() -> None:
    async def main() -> None:
        engine = ScriptedEngine(lambda prefix, sampling: [9], window=16, vocab=10)
        await engine.load_weights("main", 5, {})
        assert engine.loads == [("main", 5)]
        assert (await engine.generate(PREFIX, ASK)).versions.tolist() == [5]

    asyncio.run(main())


@pytest.mark.parametrize(("answer", "message"), [([10], "outside the vocabulary"), ([], "at least one")])
def test_bad_scripts_are_named(answer: list[int], message: str) -> None:
    engine = ScriptedEngine([answer], window=16, vocab=10)
    with pytest.raises(ValueError, match=message):
        asyncio.run(engine.generate(PREFIX, ASK))

from __future__ import annotations

import random
import threading
import time
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sandbox
from sandbox import SandboxClosed, SandboxSpec
from sandbox.admission import Admission, Ticket
from sandbox.machine import machine
from sandbox.pool import Lease, Pool
from tests.sandbox.conftest import SMALL

SPEC = SandboxSpec(limits=SMALL, files={"f": b"fresh"})
OTHER = SandboxSpec(limits=SMALL, files={"f": b"other"})


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("abc"), st.integers(-3, 20)), max_size=80))
def test_admission_is_bounded_fair_and_in_order(bound: int, steps: list[tuple[str, int]]) -> None:
    """A negative number: somebody leaves; others: somebody asks. A model of plain queues stands beside it."""
    admission = Admission(bound)
    queues: dict[str, deque[Ticket]] = {key: deque() for key in "abc"}
    inside: list[Ticket] = []
    for key, number in steps:
        if number < 0 and inside:
            admission.leave(inside.pop(number % len(inside)))
        elif number < 4 and queues[key]:
            withdrawn = queues[key][number % len(queues[key])]
            queues[key].remove(withdrawn)
            admission.leave(withdrawn)
        else:
            queues[key].append(admission.enter(key))
        for ticket in admission.admit():
            counts = {k: sum(t.key == k for t in inside) for k in "abc" if queues[k]}
            assert counts[ticket.key] == min(counts.values())
            assert queues[ticket.key].popleft() is ticket
            inside.append(ticket)
        waiting = sum(len(queue) for queue in queues.values())
        assert len(inside) <= bound
        assert waiting == 0 or len(inside) == bound
        assert (admission.waiting, admission.inside.total()) == (waiting, len(inside))


@given(st.integers(1, 8), st.lists(st.integers(0, 30), min_size=2, max_size=5))
def test_no_key_is_starved_and_places_are_shared_alike(bound: int, demands: list[int]) -> None:
    """Everyone asks at once and the oldest place is freed each time: served counts never differ by more than one
    round among keys that still wait."""
    admission = Admission(bound)
    for number, demand in enumerate(demands):
        for _ in range(demand):
            admission.enter(str(number))
    served = [0] * len(demands)
    inside: deque[Ticket] = deque()
    while True:
        for ticket in admission.admit():
            served[int(ticket.key)] += 1
            inside.append(ticket)
        hungry = [served[k] for k in range(len(demands)) if served[k] < demands[k]]
        if hungry:
            assert max(hungry) - min(hungry) <= 1
        if not inside:
            break
        admission.leave(inside.popleft())
    assert served == demands


def test_a_spare_is_handed_out_once_and_replaced() -> None:
    with Pool(max_sandboxes=4) as pool:
        pool.warm(SPEC, 2)
        _until(lambda: pool.spares() == 2)
        with pool.acquire(SPEC) as lease:
            assert lease.sandbox.read("f") == b"fresh"
            lease.sandbox.write("f", b"used")
            used = lease.sandbox
        with pytest.raises(SandboxClosed):
            used.read("f")
        _until(lambda: pool.spares() == 2)
        leases = [pool.acquire(SPEC) for _ in range(4)]
        assert all(one.sandbox.read("f") == b"fresh" for one in leases)
        assert len({id(one.sandbox) for one in leases}) == 4
        with pytest.raises(TimeoutError, match="4 of 4 are in use and 0 requests wait"):
            pool.acquire(SPEC, timeout_s=0.05)
        for one in leases:
            one.close()
            one.close()


def test_spares_make_room_for_another_spec() -> None:
    before = len(machine().live)
    with Pool(max_sandboxes=2) as pool:
        pool.warm(SPEC, 2)
        _until(lambda: pool.spares() == 2)
        with pool.acquire(OTHER) as lease, pool.acquire(OTHER) as second:
            assert lease.sandbox.read("f") == second.sandbox.read("f") == b"other"
            assert pool.spares() == 0
            assert len(machine().live) == before + 2
        _until(lambda: pool.spares() == 2)
        pool.warm(SPEC, 0)
        assert pool.spares() == 0
    assert len(machine().live) == before


def test_queue_and_run_are_measured_apart() -> None:
    with Pool(max_sandboxes=1) as pool:
        first = pool.acquire(SPEC)
        threading.Timer(0.3, first.close).start()
        with pool.acquire(SPEC) as second:
            assert second.queue_s >= 0.25
            assert second.run_s < second.queue_s
            time.sleep(0.05)
        assert second.run_s >= 0.05
        assert first.run_s >= 0.25


def test_starts_are_spaced() -> None:
    with Pool(max_sandboxes=8, starts_per_s=20.0) as pool:
        started = time.monotonic()
        leases = [pool.acquire(SPEC) for _ in range(5)]
        assert time.monotonic() - started >= 4 / 20.0
        for one in leases:
            one.close()


def test_a_flood_does_not_hold_up_others_and_the_bound_holds() -> None:
    before = len(machine().live)
    most, order, lock = [0], list[str](), threading.Lock()
    with Pool(max_sandboxes=3) as pool:
        holders = [pool.acquire(SPEC, key="flood") for _ in range(3)]

        def use(key: str) -> None:
            with pool.acquire(SPEC, key=key) as lease:
                with lock:
                    order.append(key)
                    most[0] = max(most[0], len(machine().live) - before)
                assert lease.sandbox.exec(["/bin/cat", "f"]).stdout.text == "fresh"

        threads = [threading.Thread(target=use, args=("flood",)) for _ in range(12)]
        threads += [threading.Thread(target=use, args=(key,)) for key in ("a", "b")]
        for thread in threads:
            thread.start()
        _until(lambda: pool._admission.waiting == 14)
        for one in holders:
            one.close()
        for thread in threads:
            thread.join()
        assert max(order.index("a"), order.index("b")) <= 4
        assert most[0] <= 3
    assert len(machine().live) == before


def test_close_leaves_nothing_and_wakes_who_waits() -> None:
    before, ended = len(machine().live), list[str]()
    pool = Pool(max_sandboxes=2)
    pool.warm(OTHER, 1)
    lease = pool.acquire(SPEC)

    def wait() -> None:
        leases: list[Lease] = []
        try:
            while True:
                leases.append(pool.acquire(SPEC))
        except SandboxClosed:
            ended.append("closed")

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(random.random() / 10)
    pool.close()
    for thread in threads:
        thread.join()
    assert ended == ["closed"] * 3
    with pytest.raises(SandboxClosed):
        lease.sandbox.read("f")
    with pytest.raises(SandboxClosed, match="make another"):
        pool.acquire(SPEC)
    assert len(machine().live) == before
    pool.close()


def test_mistakes_are_told() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Pool(max_sandboxes=0)
    with Pool("bublewrap") as pool, pytest.raises(ValueError, match="did you mean"):
        pool.acquire(SPEC)
    with Pool(max_sandboxes=1) as pool:
        for _ in range(3):  # a failed start gives its place back
            with pytest.raises(sandbox.SandboxUnavailable):
                pool.acquire(SandboxSpec(base="absent"), timeout_s=1.0)


def _until(condition: object) -> None:
    assert callable(condition)
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass within 5 s")

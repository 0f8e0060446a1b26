from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from envs.sql import pool
from envs.sql.pool import Pool, QueryInterrupted, Ticket, WorldError
from envs.sql.queries import World
from tests.envs.sql.shops import COLUMNS, failure_of, query, rows_of, shops
from tests.envs.sql.test_engine import FOREVER


def pids(of: Pool) -> list[int]:
    return [worker._process.pid for worker in of._all]


def test_a_worker_that_was_killed_from_outside_is_replaced_unnoticed() -> None:
    private = Pool(1)
    try:
        assert rows_of(private.run([query("SELECT 1")])[0]) == ((1,),)
        os.kill(pids(private)[0], signal.SIGKILL)
        assert rows_of(private.run([query("SELECT 2")])[0]) == ((2,),)
    finally:
        private.close()


def test_close_ends_the_workers_and_the_next_query_starts_new_ones() -> None:
    private = Pool(2)
    try:
        private.run([query("SELECT 1")])
        before = pids(private)
        assert len(before) == 2
        private.close()
        for pid in before:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert rows_of(private.run([query("SELECT 1")])[0]) == ((1,),)
        assert not set(before) & set(pids(private))
    finally:
        private.close()


def test_interrupt_ends_a_running_and_every_later_query() -> None:
    private, ticket = Pool(1), Ticket()
    timer = threading.Timer(0.2, ticket.interrupt)
    timer.start()
    try:
        started = time.monotonic()
        with pytest.raises(QueryInterrupted):
            private.run([query(FOREVER, time_s=30.0)], ticket)
        assert time.monotonic() - started < 5
        with pytest.raises(QueryInterrupted):
            private.run([query("SELECT 1")], ticket)
        assert rows_of(private.run([query("SELECT 1")])[0]) == ((1,),)
    finally:
        timer.join()
        private.close()


def test_interrupt_reaches_a_query_that_waits_for_a_worker() -> None:
    private, ticket = Pool(1), Ticket()
    busy = threading.Thread(target=lambda: private.run([query(FOREVER, time_s=1.0)]))
    busy.start()
    try:
        while not private._all or private._free:
            time.sleep(0.01)
        threading.Timer(0.1, ticket.interrupt).start()
        started = time.monotonic()
        with pytest.raises(QueryInterrupted):
            private.run([query("SELECT 1")], ticket)
        assert time.monotonic() - started < 0.9
    finally:
        busy.join()
        private.close()


def test_many_threads_share_two_workers() -> None:
    answers: dict[int, object] = {}

    def work(number: int) -> None:
        world = shops([[number, "kavo", number]])
        answers[number] = rows_of(pool.run([pool.Query(world=world, sql="SELECT cost FROM shops")])[0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: ((number,),) for number in range(40)}


def test_worlds_that_fell_out_of_memory_are_sent_again() -> None:
    private = Pool(1)
    try:
        for number in [*range(pool.WORLDS_KEPT + 5), 0, 1]:
            world = shops([[number, "kavo", number]])
            assert rows_of(private.run([pool.Query(world=world, sql="SELECT id FROM shops")])[0]) == (
                (number,),
            )
    finally:
        private.close()


def test_a_world_that_sqlite_refuses_is_the_tasks_fault() -> None:
    table = {"name": "t", "columns": [["a", "int", None], ["a", "int", None]], "rows": []}
    with pytest.raises(WorldError, match="duplicate column"):
        pool.run([pool.Query(world=World({"tables": [table]}), sql="SELECT 1")])
    nested = {"name": "t", "columns": COLUMNS[:1], "rows": [[[1]]]}
    with pytest.raises(WorldError):
        pool.run([pool.Query(world=World({"tables": [nested]}), sql="SELECT 1")])
    assert rows_of(pool.run([query("SELECT 1")])[0]) == ((1,),)


def test_a_forked_child_gets_workers_of_its_own() -> None:
    pool.run([query("SELECT 1")])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if rows_of(pool.run([query("SELECT 3")])[0]) == ((3,),) else 1
            pool.close_all()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert failure_of(pool.run([query("SELECT nope")])[0]).message == "no such column: nope"


def test_large_worlds_make_room_for_one_another() -> None:
    # 36 databases of 8 MB do not fit in a worker. It must not die of them: with several full workers, the second
    # try fails as well, and a right answer is told that it used too much memory.
    private = Pool(1)
    try:
        private.run([query("SELECT 1")])
        before = pids(private)
        for number in [*range(36), 0]:
            text = {"name": "t", "columns": [["a", "text"]], "rows": [[f"{number} " + "x" * 90_000]] * 90}
            worlds = [World({"tables": [text]}), shops([[number, "kavo", 1]])]
            sql = "SELECT COUNT(*) FROM sqlite_master"
            answers = private.run([pool.Query(world=world, sql=sql, fresh=True) for world in worlds])
            assert [rows_of(answer) for answer in answers] == [((1,),)] * 2
        assert pids(private) == before
    finally:
        private.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_compiled_queries_are_not_kept() -> None:
    private = Pool(1)

    def resident_mb() -> float:
        with open(f"/proc/{pids(private)[0]}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    try:
        private.run([query("SELECT 1")])
        before = resident_mb()
        for number in range(100):
            private.run([query(f"SELECT {number} IN ({','.join(map(str, range(number, number + 4000)))})")])
        assert resident_mb() - before < 10
    finally:
        private.close()

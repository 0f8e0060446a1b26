"""Case 47 of the abuse list: DML, DDL, ATTACH, PRAGMA, endless recursion and memory, run for real in a worker."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest

from envs.sql import pool
from tests.envs.sql.shops import failure_of, query, rows_of

FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
ALL_ROWS = ((1, "kavo", 5), (2, "kavo", 5), (3, "mul", None), (4, "a|b\nc", 7))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM shops",
        "UPDATE shops SET cost = 0",
        "UPDATE shops SET cost = 0 RETURNING id",
        "INSERT INTO shops VALUES (9, 'x', 9)",
        "DROP TABLE shops",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t (a)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "ATTACH DATABASE ':memory:' AS x",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "SELECT * FROM pragma_table_info('shops')",
        "BEGIN",
        "SAVEPOINT s",
        "ANALYZE",
        "VACUUM",
        "SELECT load_extension('x')",
        "SELECT random()",
        "SELECT hex(randomblob(900000000))",
    ],
)
def test_what_does_not_only_read_is_refused_and_changes_nothing(sql: str) -> None:
    refused = failure_of(pool.run([query(sql)])[0])
    assert refused.kind == "sql"
    assert "authoriz" in refused.message
    assert rows_of(pool.run([query("SELECT * FROM shops")])[0]) == ALL_ROWS


def test_attach_and_vacuum_create_no_file(tmp_path: Path) -> None:
    for sql in (f"ATTACH DATABASE '{tmp_path}/a.db' AS x", f"VACUUM INTO '{tmp_path}/b.db'"):
        failure_of(pool.run([query(sql)])[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql", ["", " ", "-- nothing", "SELECT 1; SELECT 2", "SELECT ?", "SELECT 1\0", "SELEC 1"]
)
def test_what_is_not_one_statement_is_an_error(sql: str) -> None:
    assert failure_of(pool.run([query(sql)])[0]).kind == "sql"


def test_an_endless_query_is_ended_at_its_deadline() -> None:
    started = time.monotonic()
    assert failure_of(pool.run([query(FOREVER, time_s=0.2)])[0]).kind == "time"
    assert time.monotonic() - started < 1.5
    endless_rows = FOREVER.replace("COUNT(*)", "x")
    assert (
        failure_of(pool.run([query(endless_rows, time_s=0.2, max_rows=3, max_count=10**9)])[0]).kind == "time"
    )


def test_a_native_call_that_outlasts_the_deadline_costs_the_worker_only() -> None:
    # INSTR compares 44 kB at each of 46,000 places and never looks at the clock; the worker's alarm ends it.
    slow = " + ".join(f"instr(hex(zeroblob(45000)), hex(zeroblob(22000)) || '{n}')" for n in range(1, 150))
    failed = failure_of(pool.run([query(f"SELECT {slow}", time_s=0.1)])[0])
    assert failed.kind == "time"
    assert rows_of(pool.run([query("SELECT 1")])[0]) == ((1,),)


def test_memory_is_bounded() -> None:
    assert failure_of(pool.run([query("SELECT hex(zeroblob(900000000))")])[0]).kind == "sql"
    sort = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000) "
        "SELECT COUNT(*) FROM (SELECT zeroblob(90000) AS z, x FROM c ORDER BY x % 7, z)"
    )
    assert failure_of(pool.run([query(sort, time_s=20.0)])[0]).kind == "memory"
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 500)"
    many = f"{endless} SELECT hex(zeroblob(40000)) FROM c"
    assert failure_of(pool.run([query(many)])[0]).kind == "memory"
    assert rows_of(pool.run([query("SELECT COUNT(*) FROM shops")])[0]) == ((4,),)


def test_rows_keep_order_duplicates_names_and_types() -> None:
    result = pool.run([query("SELECT cost, cost AS cost, 1.5, x'ff', place FROM shops ORDER BY id DESC")])[0]
    assert rows_of(result) == (
        (7, 7, 1.5, b"\xff", "a|b\nc"),
        (None, None, 1.5, b"\xff", "mul"),
        (5, 5, 1.5, b"\xff", "kavo"),
        (5, 5, 1.5, b"\xff", "kavo"),
    )
    assert isinstance(result, pool.Rows)
    assert result.columns == ("cost", "cost", "1.5", "x'ff'", "place")


def test_rows_beyond_the_limit_are_counted() -> None:
    result = pool.run([query("SELECT id FROM shops", max_rows=1, max_count=10)])[0]
    assert isinstance(result, pool.Rows)
    assert (result.rows, result.left_out) == (((1,),), 3)


def test_long_cells_are_cut_and_bad_bytes_survive() -> None:
    cut = rows_of(pool.run([query("SELECT 'abcdef', cast(x'ff' AS TEXT)", max_cell=4)])[0])
    assert cut == (("abcd...(2 characters left out)", "\ufffd"),)


def test_the_clock_stands_still() -> None:
    sql = "SELECT date('now'), strftime('%Y'), CURRENT_DATE, datetime('NOW', '+1 day'), date('2020-02-28', '+2 days')"
    expected = (("2024-06-15", "2024", "2024-06-15", "2024-06-16 12:00:00", "2020-03-01"),)
    assert rows_of(pool.run([query(sql)])[0]) == expected


@pytest.mark.skipif(sqlite3.sqlite_version_info < (3, 43), reason="SQLite has timediff since 3.43")
def test_the_clock_stands_still_for_differences() -> None:
    answer = pool.run([query("SELECT timediff('now', '2024-06-15'), timediff('2024-06-16', 'NOW')")])[0]
    assert rows_of(answer) == (("+0000-00-00 12:00:00.000", "+0000-00-00 12:00:00.000"),)


def test_a_request_runs_up_to_the_first_failure() -> None:
    results = pool.run([query("SELECT 1"), query("SELECT nothing"), query("SELECT 2")])
    assert [type(result).__name__ for result in results] == ["Rows", "Failed"]


def test_a_worker_has_no_file_or_socket_beyond_its_pipes() -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to list descriptors")
    private = pool.Pool(1)
    try:
        private.run([query("SELECT 1")])
        pid = next(iter(private._all))._process.pid
        assert sorted(os.listdir(f"/proc/{pid}/fd"), key=int) == ["0", "1", "2"]
    finally:
        private.close()

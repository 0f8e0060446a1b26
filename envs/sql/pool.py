"""The host's side of the workers: a small pool of processes shared by every `SqlEnv` of this process.

Workers start at the first query and stay until `close_all` or exit; an environment holds none of them between
its calls, only a `Ticket` by which a running query can be interrupted from another thread. A worker reads its
requests from a pipe and ends when that pipe closes, so none outlives the host.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs.errors import TaskError
from envs.sql.engine.serve import WORLDS_KEPT
from envs.sql.queries import ErrorKind, Failed, Query, Rows, Value, World

WORKERS = 2
MEMORY_MB = 512
"""Address space of one worker; SQLite's heap may use half of it."""
TOTAL_TIME_S = 60.0
"""All queries of one request together, however many databases it is about."""
KILL_GRACE_S = 3.0
"""How long after the last deadline of a request the host waits before it kills the worker itself."""


class QueryInterrupted(OSError):
    """`Ticket.interrupt` ended the query: the harness gave up, the model is not to blame."""


class WorldError(TaskError):
    """A world's description is not one that SQLite can build: the task is at fault."""


class _WorkerDied(Exception):
    """The worker closed its pipe or did not answer in time."""

    def __init__(self, kind: ErrorKind) -> None:
        super().__init__(kind)
        self.kind: ErrorKind = kind


@dataclass
class Ticket:
    """By this an environment's running query can be interrupted from another thread."""

    interrupted: bool = False
    worker: _Worker | None = field(default=None, repr=False)

    def interrupt(self) -> None:
        """End the query that runs under this ticket, and every later one, with `QueryInterrupted`."""
        self.interrupted = True
        worker = self.worker
        if worker is not None:
            worker.kill()


class _Worker:
    """One worker process; used by one thread at a time."""

    def __init__(self) -> None:
        # The engine is found beside this file, whatever else is installed.
        start = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from engine.serve import main; main()"
        # -I -S: no site-packages, no environment variables: a clean start in about 20 ms.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", start, str(MEMORY_MB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={},
            start_new_session=True,  # Ctrl-C in the terminal is for the host to handle
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin
        self._answers = self._process.stdout
        self._known: OrderedDict[str, None] = OrderedDict()  # what the worker should still remember

    def run(self, queries: Sequence[Query], total_s: float) -> list[Rows | Failed]:
        """Send the queries, with the worlds that this worker does not know, and return their results."""
        worlds = {q.world.key: q.world for q in queries}
        answer = self._exchange(queries, {k: w for k, w in worlds.items() if k not in self._known}, total_s)
        if "missing" in answer:  # fell out of the worker's memory
            answer = self._exchange(queries, {k: worlds[k] for k in answer["missing"]}, total_s)
        if "broken" in answer:
            raise WorldError(f"SQLite refuses the task's database: {answer['broken']}")
        for key in worlds:
            self._known[key] = None
            self._known.move_to_end(key)
        while len(self._known) > WORLDS_KEPT:
            self._known.popitem(last=False)
        return [_result(raw) for raw in answer["results"]]

    def _exchange(
        self, queries: Sequence[Query], worlds: Mapping[str, World], total_s: float
    ) -> dict[str, Any]:
        request = {
            "worlds": {key: world.spec for key, world in worlds.items()},
            "queries": [_request(query) for query in queries],
            "total_s": total_s,
        }
        payload = json.dumps(request).encode()
        deadline = time.monotonic() + min(total_s, sum(q.time_s for q in queries)) + KILL_GRACE_S
        try:
            self._write(struct.pack(">I", len(payload)) + payload)
        except OSError as error:
            raise _WorkerDied("memory") from error
        size = struct.unpack(">I", self._read(4, deadline))[0]
        answer: dict[str, Any] = json.loads(self._read(size, deadline))
        return answer

    def _write(self, data: bytes) -> None:
        # The worker always reads a whole request before it works, so this cannot block for long.
        view = memoryview(data)
        while view:
            view = view[os.write(self._requests.fileno(), view) :]

    def _read(self, count: int, deadline: float) -> bytes:
        fd = self._answers.fileno()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        parts = []
        while count:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise _WorkerDied("time")
            part = os.read(fd, count)
            if not part:
                # Its own alarm ends a worker whose query is stuck in one native call; else memory ran out.
                raise _WorkerDied("time" if self._process.wait() == -signal.SIGALRM else "memory")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def knows(self, key: str) -> bool:
        """Whether this worker was sent the world before."""
        return key in self._known

    def kill(self) -> None:
        """Kill the process; callable from any thread."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process, reap it and close both pipes."""
        self._process.kill()
        self._process.wait()
        self._requests.close()
        self._answers.close()

    def forget(self) -> None:
        """Close this process's copies of the pipes after a fork; the worker stays the parent's."""
        with contextlib.suppress(OSError):
            self._requests.close()
        with contextlib.suppress(OSError):
            self._answers.close()
        self._process.returncode = 0  # not our child: never waited for, never warned about


def _request(query: Query) -> dict[str, Any]:
    return {
        "kind": query.kind,
        "script": list(query.script),
        "save": query.save,
        "world": query.world.key,
        "sql": query.sql,
        "fresh": query.fresh,
        "max_rows": query.max_rows,
        "max_count": query.max_count,
        "max_cell": query.max_cell,
        "time_s": query.time_s,
    }


def _result(raw: dict[str, Any]) -> Rows | Failed:
    if "error" in raw:
        return Failed(raw["kind"], raw["error"])
    if "tables" in raw or "state" in raw:
        return Rows((), (), found=raw.get("tables") or raw.get("state"))
    rows = tuple(tuple(_value(v) for v in row) for row in raw["rows"])
    return Rows(
        tuple(raw["columns"]), rows, raw["left_out"], raw.get("changed"), saved=raw.get("saved", False)
    )


def _value(raw: Any) -> Value:
    if isinstance(raw, dict):
        return bytes.fromhex(raw["blob"])
    value: Value = raw
    return value


class Pool:
    """At most `size` workers, started at the first query and replaced when one dies."""

    def __init__(self, size: int = WORKERS) -> None:
        self._size = size
        self._start_empty()

    def _start_empty(self) -> None:
        self._free: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._changed = threading.Condition()

    def run(
        self, queries: Sequence[Query], ticket: Ticket | None = None, total_s: float = TOTAL_TIME_S
    ) -> list[Rows | Failed]:
        """Run the queries in order in one worker, up to the first that fails; blocks while all are busy.

        A worker that dies over a request is replaced and the request tried once more, so that only a request
        that kills workers by itself is blamed for it.

        Raises:
            QueryInterrupted: `ticket.interrupt()` was called.
            WorldError: a world cannot be built.
        """
        ticket = ticket or Ticket()
        for last_try in (False, True):
            worker = self._take(queries[0].world.key, ticket)
            healthy = False
            try:
                if ticket.interrupted:  # between the check in `_take` and the hand-over
                    raise QueryInterrupted("the query was interrupted by the harness")
                results = worker.run(queries, total_s)
                healthy = True
                return results
            except WorldError:
                healthy = True
                raise
            except _WorkerDied as died:
                if ticket.interrupted:
                    raise QueryInterrupted("the query was interrupted by the harness") from died
                if last_try or died.kind == "time":
                    return [Failed(died.kind, "the worker was ended")]
            finally:
                ticket.worker = None
                self._give(worker, healthy)
        raise AssertionError("unreachable")

    def _take(self, key: str, ticket: Ticket) -> _Worker:
        with self._changed:
            while True:
                if ticket.interrupted:
                    raise QueryInterrupted("the query was interrupted by the harness")
                while len(self._all) < self._size:
                    worker = _Worker()
                    self._all.add(worker)
                    self._free.append(worker)
                if self._free:
                    break
                self._changed.wait(timeout=0.2)  # the timeout lets an interrupted waiter leave
            # A worker that knows the world saves the building of it.
            worker = next((w for w in self._free if w.knows(key)), self._free[0])
            self._free.remove(worker)
            ticket.worker = worker
            return worker

    def _give(self, worker: _Worker, healthy: bool) -> None:
        with self._changed:
            keep = healthy and worker in self._all  # `close` empties `_all`
            if keep:
                self._free.append(worker)
            else:
                self._all.discard(worker)
            self._changed.notify()
        if not keep:
            worker.close()

    def close(self) -> None:
        """End all workers; the next query starts new ones. Running queries end as if killed."""
        with self._changed:
            free, self._free = self._free, []
            busy = self._all - set(free)
            self._all = set()
        for worker in free:
            worker.close()
        for worker in busy:
            worker.kill()

    def after_fork(self) -> None:
        """Forget the parent's workers in a forked child."""
        for worker in self._all:
            worker.forget()
        self._start_empty()


_POOL = Pool()
atexit.register(_POOL.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.after_fork)


def run(
    queries: Sequence[Query], ticket: Ticket | None = None, total_s: float = TOTAL_TIME_S
) -> list[Rows | Failed]:
    """Run queries in this process's pool: see `Pool.run`."""
    return _POOL.run(queries, ticket, total_s)


def close_all() -> None:
    """End this process's workers; they start again when needed."""
    _POOL.close()

"""What the server does with environments: places, threads, deadlines, and an end for everything."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from envs import registry
from envs.base import Env
from envs.errors import fault_boundary
from envs.remote.sessions import Lease, Leases, Session
from envs.remote.settings import EnvSettings
from envs.types import Fault, FaultError, FaultStage, Snapshot, Task
from sandbox.admission import Admission, Ticket
from sandbox.remote.incoming import Buffers
from sandbox.remote.once import Answer
from sandbox.remote.refusals import Refused

logger = logging.getLogger(__name__)
_T = TypeVar("_T")
_CLOSERS = 8
WITHHELD = "answer_withheld"
"""In the metadata of a task that was handed out without its answer."""


class EnvService:
    """State of a server; made and used in its event loop."""

    def __init__(self, settings: EnvSettings) -> None:
        self.settings = settings
        self.cls = registry.spec(settings.env).load()
        self.leases, self.buffers = Leases(settings), Buffers(settings.buffered_bytes)
        self.draining = False
        self.work: set[asyncio.Task[Answer]] = set()
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._places, self._waiting = Admission(settings.capacity), dict[Ticket, asyncio.Future[None]]()
        self._threads = ThreadPoolExecutor(settings.threads, "env")
        self._close_threads = ThreadPoolExecutor(_CLOSERS, "env-close")

    def make(self) -> Env:
        """A new environment."""
        return registry.make(self.settings.env, **self.settings.options)

    # ------------------------------------------------------------------------------------------------- tasks

    def remember(self, tasks: list[Task]) -> None:
        """Keep the answers of tasks that are handed out."""
        for task in tasks:
            self._tasks[task.id] = task
            self._tasks.move_to_end(task.id)
        while len(self._tasks) > self.settings.max_tasks:
            self._tasks.popitem(last=False)

    def whole(self, task: Task) -> Task:
        """A task of a client with its answer: the server's own where it handed the task out.

        Raises:
            FaultError: of kind `task`, when neither has the answer.
        """
        own = self._tasks.get(task.id)
        if own is not None:
            return own
        if task.metadata.get(WITHHELD):
            detail = f"the answer of task {task.id!r} is not here (any more): draw the tasks from this server again"
            raise FaultError(Fault(kind="task", stage="reset", detail=detail))
        return task

    # -------------------------------------------------------------------------------------------- places

    async def place(self, client: str) -> Ticket:
        """A place for one live episode; waits until there is one.

        Raises:
            Refused: `draining`.
        """
        if self.draining:
            raise Refused("draining", "the server is shutting down", retry_after_s=5)
        ticket = self._places.enter(client)
        future = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._admit()
        try:
            await future
        except BaseException:
            self._waiting.pop(ticket, None)
            self.leave(ticket)
            raise
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give a place back, or stop waiting for one."""
        self._places.leave(ticket)
        self._admit()

    def _admit(self) -> None:
        for ticket in self._places.admit():
            future = self._waiting.pop(ticket, None)
            if future is not None and not future.done():
                future.set_result(None)

    # --------------------------------------------------------------------------------------------- calls

    async def call(self, session: Session, stage: FaultStage, work: Callable[[], _T]) -> _T:
        """Run environment code under the deadline.

        Raises:
            FaultError: it failed, or outlasted the deadline: then the episode is interrupted and gone.
        """
        began = asyncio.Event()
        loop = asyncio.get_running_loop()

        def run() -> _T:
            loop.call_soon_threadsafe(began.set)
            with fault_boundary(stage):
                return work()

        running: Future[_T] = self._threads.submit(run)
        outcome = asyncio.wrap_future(running)
        await began.wait()  # the deadline does not count what a call waits for its thread
        done, _ = await asyncio.wait({outcome}, timeout=self.settings.deadline_s)
        if done:
            return outcome.result()
        session.dead = True
        outcome.add_done_callback(lambda late: None if late.cancelled() else late.exception())
        await self.end(session.env.interrupt)
        detail = f"{stage} took longer than {self.settings.deadline_s:g} s on the server and was interrupted"
        raise FaultError(Fault(kind="deadline", stage=stage, detail=detail))

    async def unbound(self, stage: FaultStage, work: Callable[[], _T]) -> _T:
        """Run environment code that belongs to no episode.

        Raises:
            FaultError: it failed.
        """

        def run() -> _T:
            with fault_boundary(stage):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    async def end(self, work: Callable[[], object]) -> None:
        """Run what ends something: always at once, and whatever it raises is logged."""
        try:
            with fault_boundary("close"):
                await asyncio.get_running_loop().run_in_executor(self._close_threads, work)
        except FaultError as error:
            logger.error("something was not closed: %s", error)

    async def close(self, lease: Lease, id: str) -> None:
        """Close an environment; nothing happens when it is gone already."""
        session = lease.sessions.pop(id, None)
        if session is not None:
            session.dead = True
            try:
                await self.end(session.env.close)
            finally:
                self.leave(session.ticket)

    async def release(self, lease: Lease, id: str) -> None:
        """Release a snapshot; nothing happens when it is gone already."""
        snapshot: Snapshot | None = lease.snapshots.pop(id, None)
        if snapshot is not None:
            await self.end(snapshot.release)

    # ---------------------------------------------------------------------------------------------- the end

    async def end_lease(self, lease: Lease) -> None:
        """Close all that a lease holds."""
        self.leases.end(lease)
        closing = [self.close(lease, id) for id in list(lease.sessions)]
        releasing = [self.release(lease, id) for id in list(lease.snapshots)]
        await asyncio.gather(*closing, *releasing)

    async def watch(self) -> None:
        """End leases whose time has come, for ever."""
        while True:
            await asyncio.sleep(min(1.0, self.settings.lease_s / 4))
            for lease in self.leases.expired():
                logger.warning("lease %s of %s ran out", lease.id[:8], lease.client)
                await self.end_lease(lease)

    async def drain(self) -> None:
        """Refuse new work, let what runs finish within `drain_s`, then close everything."""
        self.draining = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Refused("draining", "the server is shutting down"))
        if self.work:
            await asyncio.wait(set(self.work), timeout=self.settings.drain_s)
        await asyncio.gather(*(self.end_lease(lease) for lease in self.leases))
        for pool in (self._threads, self._close_threads):
            pool.shutdown(wait=False, cancel_futures=True)

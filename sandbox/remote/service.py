"""What the server does to its backend: threads for what blocks, gates before them, and an end for everything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import sandbox
from sandbox.remote.gate import Gate
from sandbox.remote.incoming import Buffers
from sandbox.remote.leases import HeldSandbox, Lease, Leases
from sandbox.remote.refusals import Refused
from sandbox.remote.settings import Settings
from sandbox.types import CapabilityReport

logger = logging.getLogger(__name__)
_T = TypeVar("_T")
_CALLS, _CALLS_WAITING, _CLOSERS = 32, 4096, 8


class Service:
    """State of a server; made and used in its event loop."""

    def __init__(self, settings: Settings, report: CapabilityReport) -> None:
        self.settings, self.report = settings, report
        self.leases, self.buffers = Leases(settings), Buffers(settings.buffered_bytes)
        self.programs = Gate(settings.running, settings.queued, settings.max_execs)
        self.calls = Gate(_CALLS, _CALLS_WAITING, _CALLS_WAITING)
        self.draining = False
        self.work: set[asyncio.Task[object]] = set()
        self._program_threads = ThreadPoolExecutor(settings.running, "program")
        self._call_threads = ThreadPoolExecutor(_CALLS, "call")
        self._close_threads = ThreadPoolExecutor(_CLOSERS, "close")

    async def run_program(self, client: str, function: Callable[[], _T]) -> tuple[_T, float]:
        """Run what may take long; also gives the seconds that it waited for a place."""
        async with self.programs.place(client) as queue_s:
            result = await asyncio.get_running_loop().run_in_executor(self._program_threads, function)
            return result, queue_s

    async def call(self, client: str, function: Callable[[], _T]) -> _T:
        """Run what is expected to be short."""
        async with self.calls.place(client):
            return await asyncio.get_running_loop().run_in_executor(self._call_threads, function)

    async def close(self, function: Callable[[], None]) -> None:
        """Run what ends something: always at once."""
        await asyncio.get_running_loop().run_in_executor(self._close_threads, function)

    def require_open(self) -> None:
        """Refuse new work while the server shuts down.

        Raises:
            Refused: `draining`.
        """
        if self.draining:
            raise Refused("draining", "the server is shutting down", retry_after_s=5)

    async def close_sandbox(self, lease: Lease, id: str) -> None:
        """Close a sandbox and its shells; nothing happens when it is gone already."""
        held = lease.sandboxes.pop(id, None)
        if held is None:
            return
        for shell_id in [name for name, shell in lease.shells.items() if shell.home is held]:
            del lease.shells[shell_id]
            self.leases.quota.give(lease.client, "shell")
        try:
            await self.close(held.sandbox.close)
        finally:
            self.leases.quota.give(lease.client, "sandbox", held.bytes)

    async def release_snapshot(self, lease: Lease, id: str) -> None:
        """Release a snapshot; nothing happens when it is gone already."""
        held = lease.snapshots.pop(id, None)
        if held is None:
            return
        try:
            await self.close(held.snapshot.release)
        finally:
            self.leases.quota.give(lease.client, "snapshot", held.bytes)

    async def close_shell(self, lease: Lease, id: str) -> None:
        """Close a shell; nothing happens when it is gone already."""
        held = lease.shells.pop(id, None)
        if held is None:
            return
        try:
            await self.close(held.shell.close)
        finally:
            self.leases.quota.give(lease.client, "shell")

    async def end_lease(self, lease: Lease) -> None:
        """Close all that a lease holds. What cannot be closed is logged; the rest is closed all the same."""
        self.leases.end(lease)
        sandboxes = [self.close_sandbox(lease, id) for id in list(lease.sandboxes)]
        snapshots = [self.release_snapshot(lease, id) for id in list(lease.snapshots)]
        for outcome in await asyncio.gather(*sandboxes, *snapshots, return_exceptions=True):
            if isinstance(outcome, BaseException):
                logger.error("lease %s: something was not closed: %s", lease.id[:8], outcome)

    async def watch(self) -> None:
        """End leases whose time has come, for ever."""
        while True:
            await asyncio.sleep(min(1.0, self.settings.lease_s / 4))
            for lease in self.leases.expired():
                logger.warning("lease %s of %s ran out; it held %d sandboxes", *_about(lease))
                await self.end_lease(lease)

    async def drain(self) -> None:
        """Refuse new work, let what runs finish within `drain_s`, then close everything."""
        self.draining = True
        self.programs.shut()
        self.calls.shut()
        if self.work:
            await asyncio.wait(set(self.work), timeout=self.settings.drain_s)
        await asyncio.gather(*(self.end_lease(lease) for lease in self.leases))
        if self.work:  # answers of what was killed
            await asyncio.wait(set(self.work), timeout=self.settings.drain_s)
        for pool in (self._program_threads, self._call_threads, self._close_threads):
            pool.shutdown(wait=False, cancel_futures=True)


def adopt(lease: Lease, held: HeldSandbox, id: str) -> bool:
    """Put a new sandbox into its lease; False when that ended while it was made."""
    if lease.alive:
        lease.sandboxes[id] = held
    return lease.alive


def open_service(settings: Settings) -> Service:
    """A service over the backend that the settings name.

    Raises:
        SandboxUnavailable: the backend cannot run here.
        ValueError: there is no such backend.
    """
    report = sandbox.capabilities(settings.backend)
    if "exec" in report.missing:
        raise sandbox.SandboxUnavailable(report.missing["exec"])
    return Service(settings, settings.offered(report))


def _about(lease: Lease) -> tuple[str, str, int]:
    return lease.id[:8], lease.client, len(lease.sandboxes)

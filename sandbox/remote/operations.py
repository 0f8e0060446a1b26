"""One function for each thing that a client may ask for: a frame in, a frame out."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import sandbox
from sandbox import Sandbox, SandboxSnapshot, SandboxSpec, Shell
from sandbox.remote import wire
from sandbox.remote.leases import HeldSandbox, HeldShell, HeldSnapshot, Lease, new_id
from sandbox.remote.limits import limits_of
from sandbox.remote.once import Answer
from sandbox.remote.refusals import Refused
from sandbox.remote.service import Service, adopt
from sandbox.setup import check_required

_Head = TypeVar("_Head", bound=wire.Head)
Operation = Callable[[Service, Lease, str, bytearray], Awaitable[Answer]]
"""Service, lease, id of the sandbox or shell that the path names, body."""


def done() -> Answer:
    """Nothing to say."""
    return Answer(200, wire.encode(wire.DoneHead, {}))


def _made(id: str) -> Answer:
    return Answer(200, wire.encode(wire.MadeHead, {"id": id}))


async def create(service: Service, lease: Lease, _: str, body: bytearray) -> Answer:
    """A new sandbox."""
    settings = service.settings
    head, parts = wire.decode(wire.CreateHead, body)
    env, files = wire.take(parts, 2 * head.env, 2 * head.files)
    limits = limits_of(head.limits)
    settings.check_limits(limits)
    check_required(frozenset(head.require), service.report)
    contents = dict(zip(map(os.fsdecode, files[::2]), files[1::2], strict=True))
    spec = SandboxSpec(
        limits=limits,
        files=contents,
        env=wire.mapping_of(env),
        base=settings.base(head.base),
        require=frozenset(head.require),
        allow=settings.check_allow(head.allow),
    )
    make = functools.partial(sandbox.create, spec, settings.backend)
    return await _adopted(service, lease, limits.workspace_bytes, make)


async def fork(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """A sandbox with the same files."""
    _no_parts(wire.decode(wire.Head, body))
    held = sandbox_of(lease, id)
    return await _adopted(service, lease, held.bytes, held.sandbox.fork)


async def _adopted(service: Service, lease: Lease, size: int, make: Callable[[], Sandbox]) -> Answer:
    quota, client, id = service.leases.quota, lease.client, new_id()
    quota.take(client, "sandbox", size)
    try:
        made = await service.call(client, make)
    except BaseException:
        quota.give(client, "sandbox", size)
        raise
    if not adopt(lease, HeldSandbox(made, size), id):
        quota.give(client, "sandbox", size)
        await service.close(made.close)
        raise Refused("lost", "the lease ended while its sandbox was made")
    return _made(id)


async def snapshot(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Freeze the files."""
    _no_parts(wire.decode(wire.Head, body))
    held = sandbox_of(lease, id)
    quota, client, new = service.leases.quota, lease.client, new_id()
    quota.take(client, "snapshot", held.bytes)
    taken: SandboxSnapshot | None = None
    try:
        taken = await service.call(client, held.sandbox.snapshot)
        if not lease.alive:
            raise Refused("lost", "the lease ended while its snapshot was taken")
    except BaseException:
        quota.give(client, "snapshot", held.bytes)
        if taken is not None:
            await service.close(taken.release)
        raise
    lease.snapshots[new] = HeldSnapshot(taken, held.bytes)
    return _made(new)


async def restore(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Put the files back."""
    head = _no_parts(wire.decode(wire.RestoreHead, body))
    held, wanted = sandbox_of(lease, id), lease.snapshots.get(head.snapshot)
    if wanted is None:
        raise Refused("error", "the snapshot was released, or is of another client; take another")
    await service.call(lease.client, functools.partial(held.sandbox.restore, wanted.snapshot))
    return done()


async def shell(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Open a shell."""
    _no_parts(wire.decode(wire.Head, body))
    held, quota, new = sandbox_of(lease, id), service.leases.quota, new_id()
    quota.take(lease.client, "shell")
    opened: Shell | None = None
    try:
        opened = await service.call(lease.client, held.sandbox.shell)
        if lease.sandboxes.get(id) is not held:
            raise Refused(
                "closed" if lease.alive else "lost", "the sandbox was closed while its shell was opened"
            )
    except BaseException:
        quota.give(lease.client, "shell")
        if opened is not None:
            await service.close(opened.close)
        raise
    lease.shells[new] = HeldShell(opened, held)
    return _made(new)


async def execute(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Run a program."""
    head, parts = wire.decode(wire.ExecHead, body)
    argv, env, (cwd,), (stdin,) = wire.take(parts, head.argv, 2 * head.env, 1, 1)
    service.settings.check_timeout(head.timeout_s)
    held = sandbox_of(lease, id)
    run = functools.partial(
        held.sandbox.exec,
        [os.fsdecode(word) for word in argv],
        stdin=stdin,
        env=wire.mapping_of(env),
        cwd=os.fsdecode(cwd),
        timeout_s=head.timeout_s,
    )
    return await _result(service, lease, held, run)


async def command(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Run a command of a shell."""
    head, parts = wire.decode(wire.RunHead, body)
    ((text,),) = wire.take(parts, 1)
    service.settings.check_timeout(head.timeout_s)
    held = lease.shells.get(id)
    if held is None:
        raise Refused("closed", "the shell was closed; open another")
    run = functools.partial(held.shell.run, os.fsdecode(text), timeout_s=head.timeout_s)
    return await _result(service, lease, held.home, run)


async def _result(
    service: Service, lease: Lease, held: HeldSandbox, run: Callable[[], sandbox.ExecResult]
) -> Answer:
    result, queue_s = await service.run_program(lease.client, run)
    if held.taken:  # killed by the server, not by its client: no result that a model may see
        raise Refused("lost", "the server closed the sandbox while the program ran")
    return Answer(200, wire.result_frame(result, queue_s))


async def write(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Write a file."""
    _, parts = wire.decode(wire.WriteHead, body)
    ((path,), (data,)) = wire.take(parts, 1, 1)
    held = sandbox_of(lease, id)
    await service.call(lease.client, functools.partial(held.sandbox.write, os.fsdecode(path), data))
    return done()


async def read(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """Read a file."""
    head, parts = wire.decode(wire.ReadHead, body)
    ((path,),) = wire.take(parts, 1)
    held, most = sandbox_of(lease, id), min(head.max_bytes, service.settings.max_body_bytes)
    look = functools.partial(held.sandbox.read, os.fsdecode(path), max_bytes=most)
    room = max(0, most)
    await service.buffers.take(room, service.settings.poll_s)
    try:
        data = await service.call(lease.client, look)
    except BaseException:
        service.buffers.give(room)
        raise
    service.buffers.give(room - len(data))
    return Answer(200, wire.encode(wire.ContentHead, {}, (data,)), room=len(data))


async def posture(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """What is enforced on a program started now."""
    _no_parts(wire.decode(wire.Head, body))
    held = sandbox_of(lease, id)
    measured, _ = await service.run_program(lease.client, held.sandbox.posture)
    return Answer(200, wire.encode(wire.PostureHead, {"posture": dict(measured)}))


async def held_by(service: Service, lease: Lease, id: str, body: bytearray) -> Answer:
    """How much a snapshot holds."""
    _no_parts(wire.decode(wire.Head, body))
    wanted = lease.snapshots.get(id)
    count = 0 if wanted is None else await service.call(lease.client, lambda: wanted.snapshot.held_bytes)
    return Answer(200, wire.encode(wire.HeldHead, {"bytes": count}))


def _no_parts(frame: tuple[_Head, list[bytes]]) -> _Head:
    head, parts = frame
    wire.take(parts)
    return head


def sandbox_of(lease: Lease, id: str) -> HeldSandbox:
    """A sandbox of this lease.

    Raises:
        Refused: `closed`.
    """
    held = lease.sandboxes.get(id)
    if held is None:
        raise Refused("closed", "the sandbox was closed; create another")
    return held


NUMBERED: dict[str, Operation] = {
    "exec": execute,
    "fork": fork,
    "restore": restore,
    "shells": shell,
    "snapshots": snapshot,
    "write": write,
}
"""What changes something: done once for each number."""
LOOKS: dict[str, Operation] = {"posture": posture, "read": read}
"""What may be repeated."""

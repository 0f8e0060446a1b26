"""One function for each thing that a client may ask of environments: a JSON object in, one out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_args

from envs.base import Env
from envs.errors import EnvError
from envs.remote.service import WITHHELD, EnvService
from envs.remote.sessions import Lease, Session, new_id
from envs.remote.wire import fault_row, pack, step_row
from envs.taskrows import read_row, task_row
from envs.types import FaultError, Split, Task
from sandbox.remote.once import Answer
from sandbox.remote.refusals import Refused

Operation = Callable[[EnvService, Lease, str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Service, lease, id of the environment or snapshot that the path names, request."""
MAX_TASKS = 10_000
"""Handed out in one request."""


async def answered(work: Awaitable[dict[str, Any]]) -> Answer:
    """What came of an operation; a fault is an answer too."""
    try:
        return Answer(200, pack(await work))
    except FaultError as error:
        return Answer(200, pack({"fault": fault_row(error.fault)}))
    except EnvError as error:
        raise Refused("error", str(error)) from error


async def info(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """What the environment declares."""
    del lease, id, request
    env = service.make()
    try:
        return {
            "id": env.name,
            "max_turns": env.max_turns,
            "determinism": env.determinism,
            "levels": list(service.cls.levels),
            "deadline_s": service.settings.deadline_s,
        }
    finally:
        await service.end(env.close)


async def tasks(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Tasks of a split; without their answers unless the server gives them."""
    del lease, id
    split: Any = request.get("split")
    n, seed, options = (request.get(key) for key in ("n", "seed", "options"))
    if split not in get_args(Split) or not isinstance(n, int) or not 0 <= n <= MAX_TASKS:
        raise Refused(
            "value", f"a split of {', '.join(get_args(Split))} and 0 to {MAX_TASKS} tasks are expected"
        )
    if not isinstance(seed, int) or not isinstance(options, dict):
        raise Refused("value", "seed is a whole number and options an object")
    drawn = await service.unbound("reset", lambda: service.cls.tasks(split, n, seed, **options))
    service.remember(drawn)
    rows = [task_row(task) for task in drawn]
    if not service.settings.answers:
        for row in rows:
            row["answer"], row["metadata"] = None, {**row["metadata"], WITHHELD: True}
    return {"tasks": rows}


async def reset(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """A new environment, reset on a task."""
    del id
    task = service.whole(_task(request.get("task")))
    seed = request.get("seed")
    if not (seed is None or isinstance(seed, int)):
        raise Refused("value", f"a seed is a whole number or null, got {seed!r:.40}")
    env = service.make()
    session = await _opened(service, lease, env)
    messages, _ = await _or_close(
        service, session, lambda: env.reset(seed=seed, options={"task": task}), "reset"
    )
    return {**await _kept(service, lease, session), "messages": messages, "tools": list(env.tools)}


async def step(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Play one action."""
    session = session_of(lease, id)
    action = request.get("action")
    if not isinstance(action, dict | str):
        raise Refused("value", f"an action is a message or text, got {type(action).__name__}")
    done = await service.call(session, "step", lambda: session.env.step(action))  # type: ignore[arg-type]
    return {"step": step_row(done)}


async def snapshot(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Freeze this point of the episode."""
    del request
    session = session_of(lease, id)
    if len(lease.snapshots) >= service.settings.max_held:
        raise Refused("quota", f"{service.settings.max_held} snapshots are held; release some first")
    taken = await service.call(session, "snapshot", session.env.snapshot)
    if not lease.alive:
        await service.end(taken.release)
        raise Refused("lost", "the lease ended while its snapshot was taken")
    name = new_id()
    lease.snapshots[name] = taken
    return {"id": name}


async def restore(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """A new environment that stands where a snapshot was taken."""
    del request
    taken = lease.snapshots.get(id)
    if taken is None:
        raise Refused("error", "the snapshot was released, or is of another client; take another")
    maker = service.make()
    session = await _opened(service, lease, maker)
    try:
        session.env = await _or_close(service, session, lambda: maker.restore(taken), "restore")
    finally:
        await service.end(maker.close)
    return {**await _kept(service, lease, session), "tools": list(session.env.tools)}


async def interrupt(service: EnvService, lease: Lease, id: str, request: dict[str, Any]) -> dict[str, Any]:
    """Stop what runs now; nothing happens when it is gone already."""
    del request
    session = lease.sessions.get(id)
    if session is not None:
        await service.end(session.env.interrupt)
    return {}


async def _opened(service: EnvService, lease: Lease, env: Env) -> Session:
    try:
        return Session(env, await service.place(lease.client))
    except BaseException:
        await service.end(env.close)
        raise


async def _or_close(service: EnvService, session: Session, work: Callable[[], Any], stage: Any) -> Any:
    try:
        return await service.call(session, stage, work)
    except BaseException:
        await service.end(session.env.close)
        service.leave(session.ticket)
        raise


async def _kept(service: EnvService, lease: Lease, session: Session) -> dict[str, Any]:
    if not lease.alive:
        await service.end(session.env.close)
        service.leave(session.ticket)
        raise Refused("lost", "the lease ended while its environment was made")
    name = new_id()
    lease.sessions[name] = session
    return {"id": name}


def _task(row: Any) -> Task:
    if not isinstance(row, dict):
        raise Refused("value", f"a task is an object, got {type(row).__name__}")
    try:
        return read_row(row)
    except ValueError as error:
        raise Refused("value", f"this is no task: {error}") from error


def session_of(lease: Lease, id: str) -> Session:
    """A live environment of this lease.

    Raises:
        Refused: `lost`, when it was closed or outlasted a deadline: never a fresh one in its place.
    """
    session = lease.sessions.get(id)
    if session is None or session.dead:
        raise Refused(
            "lost", "this episode is not on the server (any more): it was closed or outlasted its deadline"
        )
    return session


NUMBERED: dict[str, Operation] = {"step": step, "snapshot": snapshot}
"""What changes an environment: done once for each number."""

"""An environment on a server, behind the same methods: `make("http://127.0.0.1:8701")`, or `ws://`.

The client keeps the books as every `Env` does; world, grading and snapshots are the server's. Each request has a
number, so a reply that was lost is asked for again and nothing is played twice. A server that is silent or has
lost the episode is a fault of kind `sandbox_lost`: there is never a fresh episode in its place.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, get_args

from envs import registry
from envs.base import Determinism, Env, Outcome
from envs.errors import EnvError, UnknownEnvError
from envs.policies import PolicySpec
from envs.remote.wire import MAX_BYTES, pack, reward_of, unpack
from envs.taskrows import read_row, task_row
from envs.types import Fault, FaultError, FaultKind, FaultStage, Split, StopReason, Task
from sandbox.errors import SandboxError, SandboxLost
from sandbox.remote.connection import Connection, Lease, connect
from sandbox.remote.transport import checked_address
from sandbox.remote.wire import Malformed
from tools.types import Message


class RemoteEnv(Env):
    """An environment whose world is on a server; made by `remote_class`."""

    address: ClassVar[str] = ""

    def __init__(self, **base: Any) -> None:
        super().__init__(**base)
        self._session: tuple[Lease, str] | None = None

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """Tasks of the server; without answers, which it keeps, unless it gives them."""
        connection = connect(cls.address)
        request = {"split": split, "n": n, "seed": seed, "options": options}
        reply = _looked(connection, connection.lease(), "/v1/tasks", request)
        try:
            return [read_row(row) for row in reply["tasks"]]
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"the server's tasks are malformed: {error}") from error

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Those of the same id where it is known here."""
        with contextlib.suppress(UnknownEnvError, ImportError):
            return registry.spec(cls.id).load().policies()
        return {}

    def _begin(self, task: Task) -> list[Message]:
        connection = connect(self.address)
        lease = connection.lease()
        request = {"task": task_row(task), "seed": self._seed}
        reply = _numbered(connection, lease, "/v1/envs", request, new=True)
        self._open(lease, reply)
        messages: list[Message] = reply["messages"]
        return messages

    def _turn(self, action: Message) -> Outcome:
        lease, id = self._live()
        reply = _numbered(connect(self.address), lease, f"/v1/envs/{id}/step", {"action": action})
        row = reply.get("step")
        if not isinstance(row, dict) or not isinstance(row.get("observation"), list):
            raise SandboxLost("the server's step is malformed")
        stop, state_key = row.get("stop"), row.get("state_key")
        if stop is not None and stop not in get_args(StopReason):
            raise SandboxLost(f"the server names a stop reason that does not exist: {stop!r:.40}")
        return Outcome(
            observation=row["observation"],
            reward=_understood(lambda: reward_of(row.get("components"))),
            stop=stop,
            state_key=state_key if isinstance(state_key, str) else None,
        )

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            lease, id = session
            with contextlib.suppress(SandboxError):  # a server that is silent closes it by itself
                connect(self.address).end(lease, f"/v1/envs/{id}")

    def _copy(self) -> tuple[Any, Callable[[], None]]:
        lease, id = self._live()
        connection = connect(self.address)
        taken = _name(_numbered(connection, lease, f"/v1/envs/{id}/snapshot", {}))

        def release() -> None:
            with contextlib.suppress(SandboxError):
                connection.end(lease, f"/v1/snapshots/{taken}")

        return (lease, taken), release

    def _load(self, task: Task, state: Any) -> None:
        del task
        lease, taken = state
        reply = _numbered(connect(self.address), lease, f"/v1/snapshots/{taken}/restore", {})
        self._open(lease, reply)

    def interrupt(self) -> None:
        """Stop what runs now on the server; callable from another thread."""
        super().interrupt()
        session = self._session
        if session is not None:
            lease, id = session
            connection = connect(self.address)
            threading.Thread(  # whoever interrupts does not wait for a server that may be silent
                target=_quietly,
                args=(lambda: _looked(connection, lease, f"/v1/envs/{id}/interrupt", {}),),
                name="interrupt",
                daemon=True,
            ).start()

    def _open(self, lease: Lease, reply: Mapping[str, Any]) -> None:
        self._session = lease, _name(reply)
        tools = reply.get("tools")
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise SandboxLost("the server's tools are malformed")
        self.tools = tuple(tools)

    def _live(self) -> tuple[Lease, str]:
        if self._session is None:
            raise SandboxLost("there is no episode on the server")
        return self._session


@lru_cache(maxsize=64)
def remote_class(address: str) -> type[RemoteEnv]:
    """The class of the environment that a server serves.

    Raises:
        UnknownEnvError: there is no such server, or it is of another protocol.
    """
    try:
        where = checked_address(address, registry.SCHEMES)
        connection = connect(where)
        about = _looked(connection, connection.lease(), "/v1/info", {})
        determinism, levels = about["determinism"], about["levels"]
        if determinism not in get_args(Determinism) or not isinstance(levels, list):
            raise Malformed("determinism or levels")
        fields = {
            "address": where,
            "id": str(about["id"]),
            "max_turns": int(about["max_turns"]),
            "determinism": determinism,
            "levels": tuple(levels),
            "__doc__": RemoteEnv.__doc__,
        }
    except (SandboxError, FaultError, KeyError, TypeError, ValueError) as error:
        raise UnknownEnvError(
            f"{address} serves no environment that can be understood: {error}; start one with: "
            "agent-rl serve env ID"
        ) from error
    return type("RemoteEnv", (RemoteEnv,), fields)


def _numbered(
    connection: Connection, lease: Lease, path: str, request: Any, *, new: bool = False
) -> dict[str, Any]:
    body, _ = connection.numbered(lease, path, pack(request), most=MAX_BYTES, new=new)
    return _no_fault(_understood(lambda: unpack(body)))


def _looked(connection: Connection, lease: Lease, path: str, request: Any) -> dict[str, Any]:
    body = connection.look(lease, path, pack(request), most=MAX_BYTES)
    return _no_fault(_understood(lambda: unpack(body)))


def _understood(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Malformed as error:
        raise SandboxLost(f"the server's answer is not of this protocol: {error}") from error


def _no_fault(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply, unless it tells of a fault: that leaves here as it was there."""
    row = reply.get("fault")
    if row is None:
        return reply
    if (
        isinstance(row, dict)
        and row.get("kind") in get_args(FaultKind)
        and row.get("stage") in get_args(FaultStage)
    ):
        detail = f"on the server: {row.get('detail', '')}"
        fault = Fault(
            kind=row["kind"], stage=row["stage"], retryable=row.get("retryable") is True, detail=detail
        )
        raise FaultError(fault)
    raise SandboxLost("the server tells of a fault that does not exist")


def _name(reply: Mapping[str, Any]) -> str:
    name = reply.get("id")
    if not (isinstance(name, str) and name.isalnum() and name.isascii()):
        raise SandboxLost("the server made something without a name")
    return name


def _quietly(work: Callable[[], object]) -> None:
    with contextlib.suppress(SandboxError, FaultError):
        work()

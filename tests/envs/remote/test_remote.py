from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from envs import registry
from envs.base import Env
from envs.checker import check
from envs.checker.subject import play
from envs.policies import ScriptedPolicy, call
from envs.remote.client import RemoteEnv, remote_class
from envs.remote.server import running
from envs.remote.settings import EnvSettings
from envs.remote.wire import pack, unpack
from envs.types import FaultError, Task
from sandbox.remote import connection
from sandbox.remote.wire import Malformed
from tests.envs.toys.sums import Sums

SUMS = "tests.envs.toys.sums:Sums"
SLOW = "tests.envs.remote.test_remote:Slow"


class Slow(Sums):
    """Sleeps while it reads number 2, until it is interrupted; breaks at number 1."""

    id = "slow-v1"
    made = 0

    def setup(self, task: Task) -> None:
        super().setup(task)
        type(self).made += 1
        self.stopped = threading.Event()

    def _turn(self, action: Any) -> Any:
        index = action["tool_calls"][0]["function"]["arguments"].get("index")
        if index == 2:
            self.stopped.wait(20)
        if index == 1:
            raise RuntimeError("the world fell over")
        return super()._turn(action)

    def interrupt(self) -> None:
        super().interrupt()
        self.stopped.set()


Served = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module", params=["http", "ws"])
def served(request: pytest.FixtureRequest) -> Served:
    """Serves an environment, and gives the address for a client of HTTP or of a WebSocket."""

    @contextmanager
    def serve(env: str = SUMS, **settings: Any) -> Iterator[str]:
        with running(EnvSettings(env=env, port=0, **settings)) as address:
            try:
                yield address.replace("http", request.param, 1)
            finally:
                connection.disconnect()
                remote_class.cache_clear()

    return serve


@pytest.fixture(scope="module")
def address(served: Served) -> Iterator[str]:
    with served(answers=True) as where:
        yield where


@pytest.fixture
def env(address: str) -> Iterator[Env]:
    made = registry.make(address)
    yield made
    made.close()


def transcript(env: Env, task: Task) -> list[str]:
    script = [
        call("read", index=0),
        call("note", text="é"),
        call("no_such"),
        call("submit", text=task.answer),
    ]
    return play(env, ScriptedPolicy(script), task).lines()


def test_an_episode_is_the_same_as_in_process(env: Env) -> None:
    (task,) = Sums.tasks("test", 1)
    local = Sums()
    assert transcript(env, task) == transcript(local, task)
    assert (env.name, env.max_turns, env.determinism) == (local.name, local.max_turns, local.determinism)
    assert type(env).tasks("test", 1) == Sums.tasks("test", 1)


CORE = (
    "gold-scores-one",
    "noop-scores-zero",
    "no-fault-from-model",
    "restore-equals-original",
    "fork-independent",
    "step-after-end-raises",
    "close-idempotent",
    "attack:write",
)


@pytest.mark.parametrize("rules", [CORE, pytest.param(None, marks=pytest.mark.slow)], ids=["core", "all"])
def test_the_checker_is_satisfied(served: Served, rules: tuple[str, ...] | None) -> None:
    with served("sql-v1", answers=True, options={"task_options": {"level": 0}}) as where:
        report = check(where, n=1, resets=3, rules=rules)
        failed = {case.name: case.reason for case in report.cases if case.status != "pass"}
        assert failed == {}
        assert len(report.cases) >= len(CORE)


def test_a_fork_goes_its_own_way(env: Env) -> None:
    (task,) = Sums.tasks("test", 1)
    env.reset(options={"task": task})
    env.step(call("note", text="a"))
    snapshot = env.snapshot()
    first = env.step(call("note", text="b")).observation[0]["content"]
    other = env.restore(snapshot)
    assert other.step(call("note", text="b")).observation[0]["content"] == first
    assert other.step(call("note", text="c")).observation[0]["content"].startswith("a b c")
    assert env.step(call("note", text="d")).observation[0]["content"].startswith("a b d")
    snapshot.release()
    snapshot.release()
    with pytest.raises(FaultError, match="released"):
        env.restore(snapshot)
    other.close()


def test_a_step_asked_for_again_is_played_once(env: Env, address: str) -> None:
    (task,) = Sums.tasks("test", 1)
    env.reset(options={"task": task})
    assert isinstance(env, RemoteEnv)
    assert env._session is not None
    lease, id = env._session
    link = connection.connect(address)
    headers = {"agent-rl-lease": lease.head.lease, "agent-rl-request": "900"}
    path, body = f"/v1/envs/{id}/step", pack({"action": call("note", text="once")})
    replies = [link._exchange("POST", path, headers, body, most=1 << 20) for _ in range(3)]
    assert len({bytes(reply.body) for reply in replies}) == 1
    other = link._exchange("POST", path, headers, pack({"action": call("note", text="twice")}), most=1 << 20)
    assert other.status == 409
    assert env.step(call("note", text="next")).observation[0]["content"].startswith("once next")


def test_answers_stay_on_the_server(served: Served) -> None:
    with served() as where:
        cls = registry.spec(where).load()
        (task,) = cls.tasks("test", 1)
        (whole,) = Sums.tasks("test", 1)
        assert (task.id, task.answer) == (whole.id, None)
        env = registry.make(where)
        env.reset(options={"task": task})
        assert env.step(call("submit", text=whole.answer)).reward == 1.0
        forged = dataclasses.replace(task, answer="1")
        env.reset(options={"task": forged})
        assert env.step(call("submit", text="1")).reward == 0.0
        with pytest.raises(FaultError, match="is not here") as caught:
            env.reset(options={"task": dataclasses.replace(task, id="unknown")})
        assert caught.value.fault.kind == "task"
        env.close()


def test_faults_keep_their_type_and_deadlines_hold_on_the_server(served: Served) -> None:
    (task,) = Sums.tasks("test", 1)
    with served(SLOW, deadline_s=0.3) as where:
        env = registry.make(where)
        env.reset(options={"task": task})
        with pytest.raises(FaultError, match="the world fell over") as caught:
            env.step(call("read", index=1))
        assert (caught.value.fault.kind, caught.value.fault.stage) == ("environment", "step")
        env.reset(options={"task": task})
        began = time.monotonic()
        with pytest.raises(FaultError, match=r"step took longer than 0\.3 s on the server") as caught:
            env.step(call("read", index=2))
        assert caught.value.fault.kind == "deadline"
        assert time.monotonic() - began < 10
        env.close()


def test_an_interrupt_reaches_the_server(served: Served) -> None:
    (task,) = Sums.tasks("test", 1)
    with served(SLOW) as where:
        env = registry.make(where)
        env.reset(options={"task": task})
        timer = threading.Timer(0.2, env.interrupt)
        timer.start()
        began = time.monotonic()
        env.step(call("read", index=2))  # the toy gives in once it is interrupted
        assert time.monotonic() - began < 10
        timer.join()
        with pytest.raises(FaultError) as caught:
            env.step(call("read", index=0))
        assert caught.value.fault.kind == "deadline"
        env.close()


def test_capacity_is_a_queue(served: Served) -> None:
    (task,) = Sums.tasks("test", 1)
    with served(capacity=1) as where:
        first, second = registry.make(where), registry.make(where)
        first.reset(options={"task": task})
        waiting = threading.Thread(target=lambda: second.reset(options={"task": task}))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        first.close()
        waiting.join(10)
        assert not waiting.is_alive()
        assert second.step(call("submit", text=task.answer)).reward == 1.0
        second.close()


def test_a_server_that_was_restarted_is_a_fault_and_no_fresh_episode() -> None:
    (task,) = Sums.tasks("test", 1)
    with running(EnvSettings(env=SUMS, port=0)) as where:
        env = registry.make(where)
        env.reset(options={"task": task})
    port = int(where.rpartition(":")[2])
    with running(EnvSettings(env=SUMS, port=port)):
        with pytest.raises(FaultError) as caught:
            env.step(call("read", index=0))
        assert (caught.value.fault.kind, caught.value.fault.retryable) == ("sandbox_lost", True)
        env.reset(options={"task": task})
        assert env.step(call("submit", text=task.answer)).reward == 1.0
        env.close()
        connection.disconnect()
    remote_class.cache_clear()


def test_a_silent_client_loses_its_episodes(served: Served) -> None:
    (task,) = Sums.tasks("test", 1)
    with served(lease_s=1.0, capacity=1) as where:
        env = registry.make(where)
        env.reset(options={"task": task})
        assert isinstance(env, RemoteEnv)
        assert env._session is not None
        link = connection.connect(where)
        link._stop.set()  # the heart of the client stops
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(2.5)
            with pytest.raises(FaultError) as caught:
                env.step(call("read", index=0))
            break
        assert caught.value.fault.kind == "sandbox_lost"
        env.close()


def test_no_server_is_an_unknown_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RETRY_S", 0.2)
    monkeypatch.setattr(connection.Connection.__init__, "__kwdefaults__", {"retry_s": 0.2, "busy_s": 1.0})
    with pytest.raises(LookupError, match="agent-rl serve env ID"):
        registry.make("http://127.0.0.1:9")
    connection.disconnect()


@pytest.mark.parametrize("body", [b"", b"\x00\x00\x00\x02{}", b'\x00\x00\x00\x0d{"parts":[2]}[]', b"x" * 50])
def test_what_is_no_frame_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        unpack(body)


def test_listening_elsewhere_needs_a_token() -> None:
    with pytest.raises(ValueError, match="needs a token"):
        EnvSettings(env=SUMS, host="0.0.0.0")

"""Rules about repetition: equal seeds give equal episodes, and every turn is a place to fork from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from envs.base import Env
from envs.checker.conduct import wander
from envs.checker.rules_of_contract import run_python
from envs.checker.subject import Subject, Transcript, first_difference, play, step_line
from envs.policies import PolicySpec, say
from envs.registry import EnvSpec
from envs.snapshots import canonical_json
from envs.taskrows import read_row, task_row
from envs.types import Snapshot, Task
from sandbox.conformance.report import Broken, Unenforceable
from tools.types import Message, ToolSchema

FORKED_TASKS = 2
"""Forking is tried at every turn of this many tasks."""


class _Wanderer:
    """Calls one tool after the other and then stops: visits states where gold never comes."""

    def __init__(self) -> None:
        self._calls: list[Message] | None = None

    def act(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Message:
        if self._calls is None:
            self._calls = wander(tools)
        return self._calls.pop(0) if self._calls else say("Done.")


WANDERER = PolicySpec(
    name="a policy that calls every tool", kind="sloppy", make=lambda task, seed: _Wanderer()
)


def two_seeded_runs_identical(subject: Subject) -> None:
    """Two runs are byte-identical: in this process, and in another one with another hash seed."""
    if subject.cls.determinism == "none":
        raise Unenforceable("the environment declares determinism = 'none'")
    rewards_only = subject.cls.determinism == "reward"
    tasks = subject.tasks()
    first = _runs(subject, tasks, rewards_only)
    _compare(first, _runs(subject, tasks, rewards_only), "two runs in one process")
    request = _request(subject, tasks)
    if request is not None:
        hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        _compare(first, _elsewhere(request, hash_seed), f"a run with PYTHONHASHSEED={hash_seed}")


def _runs(subject: Subject, tasks: Sequence[Task], rewards_only: bool) -> list[list[str]]:
    policies = subject.policies("gold", "sloppy", "noop")
    return [_lines(subject, p, t, rewards_only) for p in policies for t in tasks]


def _lines(subject: Subject, policy: PolicySpec, task: Task, rewards_only: bool) -> list[str]:
    lines = subject.play(policy, task, seed=subject.seed).lines(rewards_only=rewards_only)
    return [f"{policy.name} on task {task.id}", *lines]


def _compare(first: list[list[str]], second: list[list[str]], what: str) -> None:
    if len(first) != len(second):
        raise Broken(
            f"{what}: {len(second)} episodes instead of {len(first)}; are its policies found there too?"
        )
    for a, b in zip(first, second, strict=True):
        if a != b:
            raise Broken(f"{what}, {a[0]}: {first_difference(a, b)}")


def _request(subject: Subject, tasks: Sequence[Task]) -> str | None:
    """What another process needs to play the same; None when it cannot find or be told the environment."""
    if not isinstance(subject.spec.entry_point, str):
        return None
    request = {
        "entry_point": subject.spec.entry_point,
        "kwargs": {**subject.spec.kwargs, **subject.options},
        "seed": subject.seed,
        "tasks": [task_row(t) for t in tasks],
    }
    try:
        return json.dumps(request)
    except TypeError:  # constructor arguments that are no JSON
        return None


def _elsewhere(request: str, hash_seed: str) -> list[list[str]]:
    code = "from envs.checker.rules_of_replay import answer; answer()"
    done = run_python(code, stdin=request, PYTHONHASHSEED=hash_seed)
    if done.returncode != 0:
        raise Broken(f"a run in a fresh process failed: {done.stderr.strip()[-300:]}")
    lines: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return lines


def answer() -> None:
    """Run in a fresh process: play what standard input asks for, print the transcripts."""
    request = json.load(sys.stdin)
    spec = EnvSpec(id="elsewhere", entry_point=request["entry_point"], kwargs=request["kwargs"])
    tasks = tuple(read_row(row) for row in request["tasks"])
    cls = spec.load()
    subject = Subject(
        target="elsewhere", spec=spec, cls=cls, n=len(tasks), seed=request["seed"], resets=0, own_tasks=tasks
    )
    print(json.dumps(_runs(subject, tasks, cls.determinism == "reward")))


def restore_equals_original(subject: Subject) -> None:
    """From a snapshot of every turn, copied or replayed, the rest of the episode is the same."""
    _require_replayable(subject)
    for policy in (*subject.policies("gold", "sloppy"), WANDERER):
        for task in subject.tasks(n=FORKED_TASKS):
            _restore_everywhere(subject, policy, task)


def _restore_everywhere(subject: Subject, policy: PolicySpec, task: Task) -> None:
    rewards_only = subject.cls.determinism == "reward"
    snapshots: list[Snapshot] = []
    env = subject.make()
    try:
        original = _play(subject, env, policy, task, lambda e: snapshots.append(e.snapshot()))
        for turn, snapshot in enumerate(snapshots):
            ways = {"a copy": snapshot} if snapshot.state is not None else {}
            if subject.cls.determinism == "exact":
                ways["a replay"] = replace(snapshot, state=None, on_release=None)
            for way, point in ways.items():
                found = _continue(env.restore(point), original, turn, rewards_only)
                _same_rest(
                    original, found, turn, rewards_only, f"{policy.name}, restored from {way} of turn {turn}"
                )
    finally:
        for snapshot in snapshots:
            snapshot.release()
            snapshot.release()
        env.close()


def fork_independent(subject: Subject) -> None:
    """Playing a fork to its end changes nothing in the environment that it was forked from."""
    _require_replayable(subject)
    rewards_only = subject.cls.determinism == "reward"
    for task in subject.tasks(n=FORKED_TASKS):
        policy = subject.policy("gold")
        original = subject.play(policy, task)

        def fork(env: Env, original: Transcript = original) -> None:
            found = _continue(env.fork(), original, env.turns, rewards_only)
            _same_rest(original, found, env.turns, rewards_only, f"the fork of turn {env.turns}")

        with subject.opened() as env:
            parent = _play(subject, env, policy, task, fork)
        found = [step_line(s, rewards_only=rewards_only) for s in parent.steps]
        _same_rest(original, found, 0, rewards_only, "an environment whose forks were played")


def _play(
    subject: Subject, env: Env, policy: PolicySpec, task: Task, before_turn: Callable[[Env], None]
) -> Transcript:
    return play(env, policy.make(task, 0), task, seed=subject.seed, before_turn=before_turn)


def _continue(env: Env, original: Transcript, turn: int, rewards_only: bool) -> list[str]:
    """Play the original's remaining actions, close, and return a line for each."""
    try:
        if env.turns != turn or canonical_json(list(env.tools)) != canonical_json(list(original.tools)):
            raise Broken(
                f"an environment restored at turn {turn} stands at turn {env.turns} or has other tools"
            )
        return [
            step_line(env.step(action), rewards_only=rewards_only)
            for action in original.actions[turn:]
            if not env.over
        ]
    finally:
        env.close()


def _same_rest(original: Transcript, found: list[str], turn: int, rewards_only: bool, what: str) -> None:
    expected = [step_line(s, rewards_only=rewards_only) for s in original.steps[turn:]]
    names = [f"turn {n}" for n in range(turn + 1, len(original.steps) + 1)]
    difference = first_difference(expected, found, names)
    if difference:
        raise Broken(f"{what}: {difference}")


def _require_replayable(subject: Subject) -> None:
    if subject.cls.determinism == "none":
        raise Unenforceable("the environment declares determinism = 'none', no fork can be verified")

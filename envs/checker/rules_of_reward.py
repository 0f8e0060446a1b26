"""Rules about rewards and endings: gold earns 1, nothing else earns anything, every episode ends."""

from __future__ import annotations

import math
from typing import get_args

from envs.base import Env
from envs.checker.conduct import barrage
from envs.checker.subject import Subject, Transcript
from envs.policies import PolicySpec, call
from envs.types import FaultError, Reward, Split, Step, StopReason, Task
from sandbox.conformance.report import Broken
from tools.types import Message

TOLERANCE = 1e-9


def gold_scores_one(subject: Subject) -> None:
    """The gold policy scores 1 on every task, from the training and the test split."""
    policy = subject.policy("gold")
    splits: list[Split | None] = [None] if subject.own_tasks else ["train", "test"]
    for split in splits:
        for task in subject.tasks(split):
            score = subject.play(policy, task).score
            if abs(score - 1.0) > TOLERANCE:
                raise Broken(f"gold scores {score:g} on task {task.id!r}, not 1: solution or grader is wrong")


def noop_scores_zero(subject: Subject) -> None:
    """Doing nothing earns nothing, in turn rewards neither."""
    for policy in subject.policies("noop"):
        for task in subject.tasks():
            seen = subject.play(policy, task)
            if max(seen.score, seen.total) > TOLERANCE:
                raise Broken(
                    f"{policy.name} earns {max(seen.score, seen.total):g} on task {task.id!r} by doing nothing"
                )


def attack_scores_zero(subject: Subject, policy: PolicySpec) -> None:
    """This attack scores nothing on any task."""
    for task in subject.tasks():
        score = subject.play(policy, task, seed=subject.seed).score
        if score > TOLERANCE:
            raise Broken(f"the attack {policy.name!r} scores {score:g} on task {task.id!r}")


def reward_components(subject: Subject) -> None:
    """Rewards are named, finite components; the number of a step is their weighted sum; grading comes last."""
    for policy in subject.policies("gold", "sloppy", "noop"):
        for task in subject.tasks():
            seen = subject.play(policy, task, seed=subject.seed)
            for number, step in enumerate(seen.steps, start=1):
                _check_step(step, f"turn {number} of {policy.name} on task {task.id!r}")
            _check_ending(seen, f"{policy.name} on task {task.id!r}")


def _check_step(step: Step, where: str) -> None:
    given = step.info.get("reward")
    if not isinstance(given, Reward):
        raise Broken(f"{where}: info['reward'] is a Reward, got {type(given).__name__}")
    expected = sum(c.weight * c.value for c in given.components if c.valid)
    if not math.isfinite(expected) or abs(expected - step.reward) > TOLERANCE:
        raise Broken(
            f"{where}: the reward is {step.reward:g}, the weighted sum of its components {expected:g}"
        )
    names = [c.name for c in given.of("episode")]
    if not all(c.name for c in given.components) or len(set(names)) != len(names):
        raise Broken(f"{where}: components have names, those of an episode distinct ones, got {names}")
    ended = step.terminated or step.truncated
    if given.of("episode") and not ended:
        raise Broken(f"{where}: an episode component is given before the episode has ended")
    if ended != ("stop" in step.info) or (ended and step.info["stop"] not in get_args(StopReason)):
        raise Broken(f"{where}: info['stop'] names why an episode ended, got {step.info.get('stop')!r}")
    if step.terminated and step.truncated:
        raise Broken(f"{where}: an episode is terminated or truncated, not both")


def _check_ending(seen: Transcript, where: str) -> None:
    if not seen.steps[-1].info["reward"].of("episode"):
        raise Broken(f"{where}: the episode ended without any episode component: grade() must name one")


def turn_limit(subject: Subject) -> None:
    """A policy that never finishes is stopped at `max_turns`, truncated, and graded."""
    task = subject.tasks(n=1)[0]
    with subject.opened(task) as env:
        limit = env.max_turns
        for number in range(1, limit + 1):
            step = env.step(call("no_such_tool"))
            if env.over:
                if step.info.get("stop") == "max_turns" and not step.truncated:
                    raise Broken("an episode that max_turns stops is truncated, this one says terminated")
                if not step.info["reward"].of("episode"):
                    raise Broken(f"the episode was stopped in turn {number} and not graded")
                return
    raise Broken(f"an episode that calls unknown tools goes on after max_turns = {limit} turns")


def no_fault_from_model(subject: Subject) -> None:
    """Malformed, mistyped and oversized actions are answered by observations: never a fault, never a reward."""
    task = subject.tasks(n=1)[0]
    with subject.opened(task) as env:
        for name, action in barrage(env.tools):
            step = _step(env, name, action)
            if not (step.terminated or step.truncated) and not step.observation:
                raise Broken(f"{name} is answered by nothing: the model cannot know what it did wrong")
            if env.over:
                _not_rewarded(step, name, task)
                env.reset(options={"task": task})


def _step(env: Env, name: str, action: Message | str) -> Step:
    try:
        return env.step(action)
    except FaultError as error:
        raise Broken(f"{name} became a fault: {error.fault.kind}, {error.fault.detail[:300]}") from error


def _not_rewarded(step: Step, name: str, task: Task) -> None:
    score = sum(c.weight * c.value for c in step.info["reward"].of("episode") if c.valid)
    if score > TOLERANCE:
        raise Broken(f"{name} scores {score:g} on task {task.id!r}")

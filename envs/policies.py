"""Helpers for scripted policies: gold, sloppy, no-op and attacks are short scripts over tool calls."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from envs.types import Policy, Task
from tools.types import Message, ToolSchema

PolicyKind = Literal["gold", "sloppy", "noop", "attack", "trivial"]
CANDIDATES = 50
Script = Generator[Message, str, None]
"""Yields actions and receives the text of each observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A scripted policy that an environment ships.

    `kind`: `gold` must score 1, `noop` and every `attack` must score 0, `sloppy` makes mistakes at declared
    rates and is what a warm start copies, `trivial` answers without looking. `make(task, seed)` builds one for
    an episode; gold may read `task.answer`, attacks must not.
    """

    name: str
    kind: PolicyKind
    make: Callable[[Task, int], Policy]

    def __post_init__(self) -> None:
        kinds = get_args(PolicyKind)
        if self.kind not in kinds:
            near = difflib.get_close_matches(str(self.kind), kinds, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"policy {self.name!r}: a kind is one of {', '.join(kinds)}, not {self.kind!r}{hint}"
            )


def call(name: str, /, **arguments: Any) -> Message:
    """An assistant message with one tool call."""
    return calls((name, arguments))


def calls(*named: tuple[str, dict[str, Any]], content: str = "") -> Message:
    """An assistant message with several tool calls, each a (name, arguments) pair."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": dict(arguments)},
            }
            for number, (name, arguments) in enumerate(named)
        ],
    }


def say(text: str) -> Message:
    """An assistant message without a tool call."""
    return {"role": "assistant", "content": text}


def texts(messages: Sequence[Message]) -> str:
    """The observation texts after the last assistant message, joined by newlines."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
    return "\n".join(m["content"] for m in messages[last + 1 :])


class ScriptedPolicy:
    """Plays a script: a list of messages, or a generator that also receives the observations.

    After its end it says `done`. When no tools are offered the request is for a summary (nothing else can be
    asked then): it answers with the last observation and does not advance the script.
    """

    def __init__(self, script: Script | Iterable[Message], *, done: str = "Done.") -> None:
        self._script = script if isinstance(script, Generator) else _listed(script)
        self._started = False
        self._done = done

    def act(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Message:
        """The next message of the script."""
        if not tools:
            seen = [m["content"] for m in messages if m["role"] == "tool"]
            return say("Summary: " + (seen[-1] if seen else "nothing was done yet"))
        try:
            if self._started:
                return self._script.send(texts(messages))
            self._started = True
            return next(self._script)
        except StopIteration:
            return say(self._done)


def _listed(messages: Iterable[Message]) -> Script:
    remaining = list(messages)
    while remaining:
        yield remaining.pop(0)


def scripted(
    kind: PolicyKind, **scripts: Callable[[Task], Script | Iterable[Message]]
) -> dict[str, PolicySpec]:
    """Policies of a kind by name, each from a function of the task that yields or lists its actions."""

    def maker(script: Callable[[Task], Script | Iterable[Message]]) -> Callable[[Task, int], Policy]:
        return lambda task, seed: ScriptedPolicy(script(task))

    return {name: PolicySpec(name=name, kind=kind, make=maker(script)) for name, script in scripts.items()}


def trivial(
    submit: Callable[[str], Message], golds: Sequence[str], *, also: Mapping[str, str] | None = None
) -> dict[str, PolicySpec]:
    """Answers that nobody should be paid for: empty, yes, 0, the most frequent gold, fifty candidates in one.

    Args:
        submit: the action that hands in a text as the answer.
        golds: the golds of all tasks as text.
        also: further fixed answers by name.
    """
    answers = {"empty": "", "yes": "yes", "zero": "0", **(also or {})}
    common = Counter(golds).most_common(CANDIDATES)
    if common and common[0][1] > 1:
        answers["frequent"] = common[0][0]
    if len(common) > 1:  # a list of one is a gold
        answers["candidates"] = "\n".join(text for text, _ in common)
    return {
        name: PolicySpec(name=name, kind="trivial", make=_fixed(submit(text)))
        for name, text in answers.items()
    }


def _fixed(action: Message) -> Callable[[Task, int], Policy]:
    return lambda task, seed: ScriptedPolicy([action])

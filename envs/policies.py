"""Helpers for scripted policies: gold, sloppy, no-op and attacks are short scripts over tool calls."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from envs.types import Policy, Task
from tools.types import Message, ToolSchema

PolicyKind = Literal["gold", "sloppy", "noop", "attack"]
Script = Generator[Message, str, None]
"""Yields actions and receives the text of each observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A scripted policy that an environment ships.

    `kind`: `gold` must score 1, `noop` and every `attack` must score 0, `sloppy` makes mistakes at declared
    rates and is what a warm start copies. `make(task, seed)` builds one for an episode; gold may read
    `task.answer`, attacks must not.
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

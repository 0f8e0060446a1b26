"""The 30-line path to an environment: write `@tool` methods, `setup` and `grade`, and inherit the rest."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from envs.base import Env, Outcome
from envs.rewards import reward
from envs.types import Reward, RewardComponent, StopReason, Task
from tools.mcp import McpServer, McpTools
from tools.schema import Tool, tools_of
from tools.toolbox import Toolbox
from tools.types import Message, ToolCall, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """What a snapshot by copy holds beside the books of `Env`."""

    state: Any
    rng_state: dict[str, Any]
    outputs: dict[str, str]
    """What `read_more` can still show."""


class ToolEnv(Env):
    """An environment whose actions are tool calls.

    A subclass defines tools as `@tool` methods, `setup(task)` and `grade()`. A tool raises `ToolError` for
    the model's mistakes, calls `self.finish()` to end the episode after the current call, and may call
    `self.turn_reward(name, value)`. Randomness comes from `self.rng`, which the task's seed keys. Tools run
    in changing threads.

    Several calls of one turn run in order, as far as they start within `turn_time_s`. A turn without any call
    ends the episode, or with `on_no_tool_call = "remind"` is answered by a reminder. The episode is graded
    once: when `finish` was called, when a turn had no call, or at `max_turns`.
    """

    on_no_tool_call: ClassVar[Literal["end", "remind"]] = "end"
    read_more: ClassVar[bool] = False
    """Whether clipped output can be read further by an extra tool `read_more`."""
    tool_timeout_s: ClassVar[float] = 30.0
    """A tool that runs longer is interrupted and the episode becomes a `deadline` fault."""
    turn_time_s: ClassVar[float] = 10.0
    """Calls of a turn that would start later than this are not run but answered by an error. Else a model could
    escape its reward by a hundred slow calls: the harness's deadline for a step makes a fault of them."""
    max_output_chars: ClassVar[int] = 8000
    mcp: ClassVar[tuple[McpServer, ...]] = ()
    """MCP servers whose tools are offered beside the own ones; opened with every episode."""

    _toolbox: Toolbox
    _tools: list[Tool] | None = None
    _finished: bool = False
    _turn_rewards: tuple[RewardComponent, ...] = ()
    _connections: tuple[McpTools, ...] = ()

    # ------------------------------------------------------------------------------ written by subclasses

    def setup(self, task: Task) -> None:
        """Build the world of `task`; called by every `reset`."""

    def prompt(self) -> list[Message]:
        """The first messages; called after `setup`."""
        return list(self.task.prompt)

    def grade(self) -> Reward | float:
        """Judge the finished episode; called exactly once. A number becomes a component named `reward`."""
        raise NotImplementedError(f"{type(self).__name__} must define grade()")

    def teardown(self) -> None:
        """Take down what `setup` built; called once for every `setup`, also after one that failed."""

    def state_key(self) -> str | None:
        """A name for the state of the world, equal for equal states; None when there is none."""
        return None

    def copy_state(self) -> Any | None:
        """A copy of the world, never changed afterwards; None (the default) means snapshots are replayed.

        If it has a method `release()`, releasing the snapshot calls it.
        """
        return None

    def load_state(self, state: Any) -> None:
        """Build the world from what `copy_state` returned, instead of `setup`; may be called many times."""
        raise NotImplementedError(
            f"{type(self).__name__} defines copy_state and must define load_state(state)"
        )

    # --------------------------------------------------------------------------------- called by subclasses

    def finish(self) -> None:
        """End the episode after the current tool call; later calls of the same turn are not run."""
        self._finished = True

    def turn_reward(self, name: str, value: float, *, weight: float = 1.0) -> None:
        """Add a named component to the reward of the current turn."""
        self._turn_rewards += (RewardComponent(name=name, value=value, weight=weight, scope="turn"),)

    @property
    def last_action(self) -> Message | None:
        """The newest action: for environments whose answer is plain text."""
        return copy.deepcopy(self._actions[-1]) if self._actions else None

    # ------------------------------------------------------------------------------------------ the engine

    def _begin(self, task: Task) -> list[Message]:
        self._finished = False
        self._connect()
        self.setup(task)
        self._make_toolbox()
        return self.prompt()

    @classmethod
    def unforkable(cls) -> str:
        """Why episodes cannot fork; empty where they can."""
        fixed = [server.url or server.command[0] for server in cls.mcp if not server.replayable]
        return f"the MCP server {fixed[0]} is not declared replayable" if fixed else ""

    def _connect(self) -> None:
        for server in self.mcp:
            self._connections += (McpTools(server),)

    def _make_toolbox(self) -> None:
        if self._tools is None:
            self._tools = tools_of(self)
            _refuse_reserved(self._tools)
        self._toolbox = Toolbox(
            [*self._tools, *(each for connection in self._connections for each in connection.tools)],
            timeout_s=self.tool_timeout_s,
            max_output_chars=self.max_output_chars,
            on_timeout=self.interrupt,
            read_more=self.read_more,
        )
        self.tools = self._toolbox.schemas

    def _turn(self, action: Message) -> Outcome:
        self._turn_rewards = ()
        calls = action.get("tool_calls", [])
        errors = action.get("parse_errors", [])
        until = time.monotonic() + self.turn_time_s
        observation: list[Message] = [_as_message(self._run(call, until)) for call in calls]
        if errors:
            observation.append({"role": "user", "content": self._toolbox.clip(_errors_text(errors))})
        stop: StopReason | None = "submitted" if self._finished else None
        if not calls and not errors:
            if self.on_no_tool_call == "end":
                stop = "no_tool_call"
            else:
                observation.append({"role": "user", "content": self._reminder()})
        return Outcome(
            observation=observation, reward=Reward(self._turn_rewards), stop=stop, state_key=self.state_key()
        )

    def _run(self, call: ToolCall, until: float) -> ToolResult:
        if self._finished:
            return _not_run(call, "the episode had already ended")
        if time.monotonic() > until:
            return _not_run(call, f"the calls of this turn took more than {self.turn_time_s:g} s; call again")
        return self._toolbox.call(call)

    def _reminder(self) -> str:
        names = ", ".join(schema["name"] for schema in self.tools)
        return f"error: every turn needs a tool call; the tools are: {names}"

    def _grade(self) -> Reward:
        judged = self.grade()
        return judged if isinstance(judged, Reward) else reward(float(judged))

    def _end(self) -> None:
        connections, self._connections = self._connections, ()
        with contextlib.ExitStack() as last:
            for connection in connections:
                last.callback(connection.close)
            self.teardown()

    def _copy(self) -> tuple[Any, Callable[[], None] | None] | None:
        state = None if self.mcp else self.copy_state()  # what a server holds can only be replayed
        if state is None:
            return None
        copied = _Copied(
            state=state,
            rng_state=copy.deepcopy(dict(self.rng.bit_generator.state)),
            outputs=self._toolbox.outputs(),
        )
        return copied, getattr(state, "release", None)

    def _load(self, task: Task, state: Any) -> None:
        self.rng.bit_generator.state = copy.deepcopy(state.rng_state)
        self.load_state(state.state)
        self._make_toolbox()
        self._toolbox.load_outputs(state.outputs)


def _errors_text(errors: list[str]) -> str:
    return "\n".join(f"error: {error}" for error in errors)


def _not_run(call: ToolCall, why: str) -> ToolResult:
    return {
        "role": "tool",
        "content": f"error: not run, {why}",
        "tool_call_id": call["id"],
        "name": call["function"]["name"],
    }


def _as_message(result: ToolResult) -> Message:
    return {
        "role": "tool",
        "content": result["content"],
        "tool_call_id": result["tool_call_id"],
        "name": result["name"],
    }


_RESERVED = frozenset(n for n in (*vars(ToolEnv), *vars(Env), "render") if not n.startswith("_"))


def _refuse_reserved(tools: list[Tool]) -> None:
    """A tool method named like a method of ours would silently replace it."""
    for each in tools:
        method = getattr(each.function, "__name__", "")
        if method in _RESERVED:
            raise TypeError(
                f"a tool method must not be named {method!r}, which belongs to ToolEnv: give the method "
                f"another name and write @tool(name={method!r})"
            )

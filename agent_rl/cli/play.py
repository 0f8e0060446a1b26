"""`agent-rl play ENV`: watch a scripted policy, or act yourself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tools.types import Message, ToolSchema


def play(
    target: Annotated[
        str, typer.Argument(help="Environment id, package.module:Class, or path/to/file.py:Class.")
    ],
    policy: Annotated[str, typer.Option(help="Scripted policy; `human` lets you type.")] = "gold",
    option: Annotated[list[str] | None, typer.Option(help="Task options such as level=2.")] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Play one episode and show every message, reward included."""
    from rich.console import Console
    from rich.text import Text

    from agent_rl.cli.evaluate import _options
    from agent_rl.evaluation import find_policy
    from agent_rl.evaluation import play as play_episode
    from envs.registry import make, spec

    console = Console()
    task = spec(target).load().tasks(split, 1, seed, **_options(option or []))[0]  # type: ignore[arg-type]
    player = Human(console.input) if policy == "human" else find_policy(target, policy).make(task, seed)
    colours = {"system": "dim", "user": "cyan", "assistant": "green", "tool": "yellow"}

    def show(message: Message) -> None:
        lines = [message["content"]] if message["content"] else []
        lines += [
            f"-> {c['function']['name']}({', '.join(f'{k}={v!r}' for k, v in c['function']['arguments'].items())})"
            for c in message.get("tool_calls", ())
        ]
        role = message["role"]
        console.print(
            Text(f"{role:>9}  ", style="bold") + Text("\n           ".join(lines), style=colours[role])
        )

    outcome, _ = play_episode(lambda: make(target), player, task, on_message=show)
    verdict = f"reward {outcome.reward:g} ({outcome.stop})"
    if outcome.fault:
        verdict = f"fault: {outcome.fault}: {outcome.detail}"
    console.print(
        f"{verdict}, {outcome.turns} turns, {outcome.tool_errors} tool errors", style="bold", highlight=False
    )
    if outcome.fault:
        raise typer.Exit(1)


class Human:
    """Reads actions from the keyboard in the compact call format, such as `run_sql("SELECT 1")`."""

    def __init__(self, ask: object) -> None:
        self._ask = ask

    def act(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Message:
        """Ask for one line."""
        from tools import formats

        del messages
        names = ", ".join(tool["name"] for tool in tools)
        try:
            typed = self._ask(f"your turn ({names}): ")  # type: ignore[operator]
        except EOFError:
            raise KeyboardInterrupt from None
        parsed = formats.get("pythonic").parse(typed, tools)
        message: Message = {"role": "assistant", "content": parsed.content}
        if parsed.tool_calls:
            message["tool_calls"] = parsed.tool_calls
        if parsed.parse_errors:
            message["parse_errors"] = parsed.parse_errors
        return message

"""`agent-rl new NAME`: write a working environment to start from, with its test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def new(
    name: Annotated[str, typer.Argument(help="Such as my_env: lower-case letters, digits, _.")],
    folder: Annotated[Path, typer.Option(help="Where to write it.")] = Path(),
) -> None:
    """Write a working environment of 40 lines and its test, to change into your own."""
    from agent_rl.scaffold import write

    environment, test = write(name, folder)
    cls = next(line for line in environment.read_text().splitlines() if line.startswith("class "))
    target = f"{environment}:{cls.removeprefix('class ').partition('(')[0]}"
    print(f"wrote {environment} and {test}; next:\n")
    print(f"  agent-rl play {target}")
    print(f"  agent-rl check {target}")
    print(f"  python -m pytest {test}")

"""`agent-rl check ENV`: is this environment sound, and are its rewards hard to fake?"""

from __future__ import annotations

import json
from typing import Annotated

import typer


def check(
    target: Annotated[
        str, typer.Argument(help="Environment id, package.module:Class, or path/to/file.py:Class.")
    ],
    n: Annotated[int, typer.Option(help="Tasks a rule looks at.", min=1)] = 8,
    seed: Annotated[int, typer.Option()] = 0,
    tasks_file: Annotated[str, typer.Option("--tasks", "--tasks-file", help="JSONL of your own tasks.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Machine output.")] = False,
) -> None:
    """Check an environment against every rule; exit status 1 when one fails."""
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from envs.checker import check as check_env
    from envs.tasksets import load_jsonl

    console = Console(stderr=as_json)
    found = load_jsonl(tasks_file, target) if tasks_file else None
    for error in found.errors if found is not None else ():
        console.print(
            f"{error.file}:{error.line}: {error.field}: {error.message}", highlight=False, markup=False
        )
    with ConsoleProgress(console) as progress:
        report = check_env(
            target,
            tasks=None if found is None else found.tasks,
            n=n,
            seed=seed,
            progress=lambda name: progress.phase(name, 1),
        )
    print(json.dumps(report.to_json()) if as_json else report.text())
    raise typer.Exit(0 if report.passed else 1)

"""`agent-rl train CONFIG.toml [key=value ...]`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def train(
    config: Annotated[Path, typer.Argument(help="TOML file; see examples/.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings such as trainer.steps=50.", metavar="key=value ...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the final reports as JSON.")] = False,
) -> None:
    """Train an agent; the same command continues a run that was interrupted."""
    from rich.console import Console

    from agent_rl.config import load, to_toml

    effective = load(config, overrides or [])
    console = Console(stderr=as_json)
    console.print(to_toml(effective), style="dim", highlight=False, markup=False)

    from agent_rl.cli.console import ConsoleProgress
    from agent_rl.runs import train_run
    from agent_rl.telemetry import make as make_sinks

    with ConsoleProgress(console) as progress:
        sinks = [
            make_sinks(effective.telemetry, effective.run_dir, steps=effective.trainer.steps, console=console)
        ]
        reports = train_run(effective, progress=progress, sinks=sinks)
    if as_json:
        print(json.dumps({name: report.to_json() for name, report in reports.items()}))
    else:
        from agent_rl.cli.tables import reports_table

        console.print(reports_table(reports.values()))
        console.print(f"run folder: {effective.run_dir}", highlight=False)

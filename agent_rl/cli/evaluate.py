"""`agent-rl eval ENV --policy NAME` and `agent-rl eval RUN_FOLDER`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    target: Annotated[str, typer.Argument(help="An environment (with --policy), or the folder of a run.")],
    policy: Annotated[
        str, typer.Option(help="Scripted policy of the environment: gold, sloppy, noop, ...")
    ] = "",
    tasks: Annotated[int, typer.Option(help="Held-out tasks.", min=1)] = 200,
    samples: Annotated[int, typer.Option(help="Episodes a task, for pass@k (runs only).", min=1)] = 1,
    temperature: Annotated[float, typer.Option(help="Sampling temperature, 0 is greedy (runs only).")] = 1.0,
    tasks_file: Annotated[str, typer.Option(help="JSONL of your own tasks.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="Task options such as level=2.")] = None,
    seed: Annotated[int, typer.Option()] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Machine output.")] = False,
) -> None:
    """Evaluate on held-out tasks: success with an interval, faults apart."""
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from agent_rl.cli.tables import reports_table

    console = Console(stderr=as_json)
    with ConsoleProgress(console) as progress:
        if Path(target, "config.toml").is_file():
            if policy or option or tasks_file:
                raise ValueError(
                    "--policy, --option and --tasks-file are for scripted policies; a run is evaluated on held-out "
                    "tasks of its own configuration: leave them out"
                )
            from agent_rl.runs import evaluate_run

            report = evaluate_run(
                Path(target), tasks=tasks, samples=samples, temperature=temperature, progress=progress
            )
        else:
            if "/" in target and ":" not in target:
                raise ValueError(f"there is no run in {target}; see: agent-rl runs list")
            from agent_rl.evaluation import evaluate_scripted, held_out_tasks

            work = held_out_tasks(
                target,
                tasks,
                seed=seed,
                options=_options(option or []),
                tasks_file=tasks_file,
                say=progress.say,
            )
            progress.phase(f"evaluate {policy or 'gold'}", len(work))
            report = evaluate_scripted(
                target, policy or "gold", work, seed=seed, progress=lambda outcome: progress.advance()
            )
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        console.print(reports_table([report]))
        for kind, detail in report.fault_examples.items():
            console.print(f"fault, {kind}: {detail}", style="red", highlight=False, markup=False)


def _options(pairs: list[str]) -> dict[str, object]:
    import tomllib

    options: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"a task option reads key=value, such as level=2; got {pair!r}")
        try:
            options[key] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            options[key] = text
    return options

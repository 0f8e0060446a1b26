"""`agent-rl check TARGET`: is this environment sound and are its rewards hard to fake; does this sandbox hold?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

_SANDBOX = "sandbox:"


def check(
    target: Annotated[
        str,
        typer.Argument(
            help="Environment id, package.module:Class, path/to/file.py:Class, sandbox:BACKEND or sandbox:matrix."
        ),
    ],
    n: Annotated[int, typer.Option(help="Tasks a rule looks at.", min=1)] = 8,
    seed: Annotated[int, typer.Option()] = 0,
    tasks_file: Annotated[
        str,
        typer.Option(
            "--tasks", "--tasks-file", help="A file or folder of your own tasks: play them instead."
        ),
    ] = "",
    format: Annotated[str, typer.Option(help="Its format; empty recognises it.")] = "",
    sample: Annotated[int, typer.Option(help="How many of your tasks are played.", min=1)] = 20,
    all_: Annotated[bool, typer.Option("--all", help="Play all of them.")] = False,
    out: Annotated[str, typer.Option(help="Where sandbox:matrix writes its page; empty prints it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Machine output.")] = False,
) -> None:
    """Check an environment, your tasks for it, or a sandbox backend; exit status 1 when anything fails."""
    if target == f"{_SANDBOX}matrix":
        _matrix(out, as_json)
    elif target.startswith(_SANDBOX):
        _sandbox(target.removeprefix(_SANDBOX), as_json)
    elif tasks_file:
        _own_tasks(target, tasks_file, format, None if all_ else sample, seed, as_json)
    else:
        _environment(target, n, seed, as_json)


def _environment(target: str, n: int, seed: int, as_json: bool) -> None:
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from envs.checker import check as check_env

    with ConsoleProgress(Console(stderr=as_json)) as progress:
        report = check_env(target, n=n, seed=seed, progress=lambda name: progress.phase(name, 1))
    print(json.dumps(report.to_json()) if as_json else report.text())
    raise typer.Exit(0 if report.passed else 1)


def _own_tasks(target: str, path: str, format: str, sample: int | None, seed: int, as_json: bool) -> None:
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from envs.checker.survey import survey
    from envs.registry import spec

    found = spec(target).load().read_tasks(path, format=format)
    with ConsoleProgress(Console(stderr=as_json)) as progress:
        report = survey(
            target,
            found.tasks,
            errors=found.errors,
            sample=sample,
            seed=seed,
            progress=lambda task_id: progress.phase(task_id, 1),
        )
    print(json.dumps(report.to_json()) if as_json else report.text())
    raise typer.Exit(0 if report.passed else 1)


def _sandbox(backend: str, as_json: bool) -> None:
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from sandbox import conformance

    with ConsoleProgress(Console(stderr=True)) as progress:
        progress.phase(backend, len(conformance.CASES))
        report = conformance.run(backend, progress=lambda name: progress.advance())
    print(json.dumps(report.to_json()) if as_json else report.text())
    raise typer.Exit(0 if report.passed else 1)


def _matrix(out: str, as_json: bool) -> None:
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from sandbox import conformance
    from sandbox.conformance.matrix import COLUMNS, columns, matrix

    with ConsoleProgress(Console(stderr=True)) as progress:
        progress.phase("sandboxes", len(COLUMNS) * len(conformance.CASES))
        reports, absent = columns(lambda column, case: progress.advance())
    page = matrix(reports, absent)
    if out:
        path = Path(out)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    if as_json:
        print(json.dumps([report.to_json() for report in reports]))
    elif not out:
        print(page, end="")
    raise typer.Exit(0 if reports and all(report.passed for report in reports) else 1)
